// README.md and docs/examples.md, done as they are printed: in a fresh checkout, and in an empty project beside it that
// has installed the packed SDK.

import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf, Checkout, masked } from './support/checkout.ts'
import { root } from './support/cli.ts'
import { files, textOf } from './support/source.ts'

/** Columns are parted by tabs in a pipe, and by spaces on a page. */
function spaced(text: string): string {
  return text.replace(/\t| {2,}/g, ' ')
}

const checkout = new Checkout()
afterAll(() => checkout.clean())

describe('README.md', () => {
  const commands = blocksOf('README.md', 'sh')
  const [start, first, story, calls, install, run, command_line, mcp] = commands
  const [snippet] = blocksOf('README.md', 'ts')
  let printed: string[]

  /** A block that prints no address, and keeps that of its first command with the key. */
  function here(block: string): string {
    return block.replace('tenant create', `tenant --url ${checkout.url} create`)
  }

  /** The lines in Python are those of sdk-python/README.md, which `npm run test:python` runs. */
  test('has no other block than those that run here, and the lines of the Python client', () => {
    expect(commands).toHaveLength(8)
    const fences = readFileSync(join(root, 'README.md'), 'utf8').match(/^```\w+$/gm)!
    expect(fences.toSorted()).toEqual(
      ['```json', ...commands.map(() => '```sh'), '```python', '```text', '```ts'].toSorted(),
    )
  })

  test('starts the service by its first command, and an agent by its second', async () => {
    await checkout.serve(start!)
    expect(await checkout.run(first!)).toEndWith('- done; the tenant is scheduled for deletion\n')
  })

  test('tells the story of a workflow in ten lines, which print its line from question to consequence', async () => {
    expect(story!.trimEnd().split('\n')).toHaveLength(10)
    const printed = await checkout.run(here(story!))
    const line = printed.split('\n').slice(-4).join('\n')
    expect(spaced(masked(line))).toBe(spaced(masked(blocksOf('README.md', 'text')[0]!)))
  })

  test('goes through all its other commands in one shell', async () => {
    for (const name of ['first.mjs', 'first.mts']) checkout.write(`../my-agent/${name}`, snippet!)
    const session = [calls, install, run, here(command_line!), mcp].join('\necho =====\n')
    printed = (await checkout.run(session)).split('=====\n')
    expect(printed).toHaveLength(5)
  }, 300_000)

  test('prints the answers of the first five calls', () => {
    expect(masked(printed[0]!)).toBe(masked(blocksOf('README.md', 'json')[0]!))
  })

  test('runs the TypeScript snippet in an empty project, under Node', () => {
    expect(printed[2]).toContain("key: 'last-run',\n  value: { rows: 42 },\n  version: 2,")
  })

  test('gets its value back by the command line, and its keys over MCP', () => {
    expect(printed[3]).toContain('rows')
    expect(JSON.parse(printed[4]!).result.structuredContent.items).toMatchObject([
      { key: 'last-run', version: 2 },
      { key: 'runs', version: 1 },
    ])
  })

  test('and docs/sdk.md install the SDK in the same way', () => {
    expect(blocksOf('docs/sdk.md', 'sh')).toEqual([install!])
  })

  test('has programs that pass a strict compiler there, and so do the tutorial and the recipes', async () => {
    const folders = ['examples/tutorial', 'examples/recipes']
    const programs = folders.flatMap((folder) =>
      readdirSync(join(root, folder)).map((name) => [folder, name] as const),
    )
    expect(programs.length).toBeGreaterThan(6)
    for (const [folder, name] of programs) {
      const text = readFileSync(join(root, folder, name), 'utf8')
      checkout.write(`../my-agent/${name.replace(/\.ts$/, '.mts')}`, text)
    }
    const strict =
      '--strict --noEmit --skipLibCheck false --exactOptionalPropertyTypes --noUncheckedIndexedAccess'
    const node = `--target es2022 --module nodenext --types node --typeRoots ${join(root, 'node_modules/@types')}`
    const compiler = join(root, 'node_modules/.bin/tsc')
    expect(await checkout.run(`cd ../my-agent && ${compiler} ${strict} ${node} *.mts`)).toBe('')
  })
})

test('no page installs from the registry what is not there', () => {
  const pages = files.filter((file) => /^(README|docs\/.+|sdk\/README)\.md$/.test(file))
  expect(pages.length).toBeGreaterThan(30)
  const installs =
    /npm (?:i|install|add)(?: -\S+)* waystation\b|npx (?:-\S+ )*(?:waystation-service|waystation@)/
  expect(pages.filter((file) => installs.test(textOf(file)))).toEqual([])
})

describe('docs/examples.md', () => {
  const [examples, site] = blocksOf('docs/examples.md', 'sh')

  test('runs every example that it lists', async () => {
    const lines = examples!.trimEnd().split('\n')
    const ran = await Promise.all(lines.map((line) => checkout.run(line)))
    for (const output of ran) expect(output).toMatch(/scheduled for deletion\.?\n$/)
    const page = readFileSync(join(root, 'docs/examples.md'), 'utf8')
    const there = readdirSync(join(root, 'examples'))
    expect(there.filter((name) => !page.includes(`\`examples/${name}`))).toEqual([])
    const programs = there.filter((name) => /\.(ts|sh)$/.test(name))
    expect(programs.filter((name) => !examples!.includes(`examples/${name} `))).toEqual([])
  })

  test('reads the documentation of the running service', async () => {
    const output = await checkout.run(site!)
    expect(output).toStartWith('# Waystation\n')
    expect(Number(output.trimEnd().split('\n').at(-1))).toBeGreaterThan(30)
  })
})
