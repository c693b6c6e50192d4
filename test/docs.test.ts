// The documentation and the code say the same: no code, setting, status or route that one has and the other lacks.

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorsText } from '../scripts/errors.ts'
import { eventsText } from '../scripts/events.ts'
import { type ErrorCode, errors } from '../src/base/errors.ts'
import { migrations, routes } from '../src/features.ts'
import { settings, settingsHelp } from '../src/settings.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const codes = Object.keys(errors) as ErrorCode[]
const names = Object.keys(settings) as (keyof typeof settings)[]

describe('docs/errors.md', () => {
  const sections = sectionsOf('docs/errors.md')

  test('in git is what the codes say; after a change run: npm run openapi', () => {
    expect(textOf('docs/errors.md')).toBe(errorsText())
  })

  test('has a heading for every error code, once, and none for a code that is gone', () => {
    expect(sections.map(({ title }) => title).toSorted()).toEqual(codes.toSorted())
  })

  test.each(sections.map(({ title, text }): [string, string] => [title, text]))(
    '%s begins with its status',
    (title, text) => {
      const status =
        title === 'VERSION_MISMATCH'
          ? /^\*\*409\.\*\*.*\b412\b/
          : new RegExp(`^\\*\\*${errors[title as ErrorCode].status}\\.\\*\\* `)
      expect(text).toMatch(status)
      expect(text.length).toBeGreaterThan(40)
    },
  )

  test('names no code elsewhere that is none', () => {
    const known = new Set<string>([...codes, ...names, ...namesOfCommandLine(), 'BACKUP_PASSPHRASE'])
    const named = pages().flatMap((page) =>
      [...textOf(page).matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g)].map(
        ([, name]) => [page, name!] as const,
      ),
    )
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(([, name]) => !known.has(name))).toEqual([])
  })
})

describe('docs/events.md', () => {
  test('in git has the types as they are declared; after a change run: npm run events', () => {
    expect(textOf('docs/events.md')).toBe(eventsText())
  })

  test('needs its place for the tables', () => {
    expect(() => eventsText('# Events')).toThrow('docs/events.md has no place for the tables')
  })
})

describe('every error code', () => {
  const source = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => {
    return (
      file.endsWith('.ts') &&
      !file.endsWith('.test.ts') &&
      !['errors.ts', 'responses.ts'].includes(file.split('/').at(-1)!)
    )
  })
  // A list of what a route may answer is not a use of a code.
  const used = source.map((file) => textOf(join('src', file)).replace(/\berrors: \[[^\]]*\]/g, '')).join('\n')

  test.each(codes)('%s is answered somewhere', (code) => {
    const by_table = code === 'VALIDATION_FAILED' ? 'invalid(' : `'${code}'`
    expect(used.includes(by_table)).toBe(true)
  })

  test('has one sentence, and a status of 400 and more', () => {
    for (const code of codes) {
      const { status, message } = errors[code]
      expect([code, status >= 400 && status < 600, message]).toEqual([
        code,
        true,
        expect.stringMatching(/^[A-Z].*\.$/),
      ])
    }
  })
})

describe('docs/configuration.md', () => {
  const sections = sectionsOf('docs/configuration.md')

  test('has a heading for every setting, once, and none for a setting that is gone', () => {
    expect(sections.map(({ title }) => title)).toEqual(names)
  })

  test.each(names)('%s begins with its default', (name) => {
    const { initial } = settings[name]
    const words =
      initial === 'none' || initial === 'generated' ? `Default: ${initial}` : `Default \`${initial}\``
    expect(sections.find(({ title }) => title === name)!.text.startsWith(words)).toBe(true)
  })

  test('--help prints every setting with its default, and nothing that is none', async () => {
    const help = Bun.spawn([process.execPath, join(root, 'src/main.ts'), '--help'], {
      cwd: root,
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [printed, complained, status] = await Promise.all([
      new Response(help.stdout).text(),
      new Response(help.stderr).text(),
      help.exited,
    ])
    expect([status, complained]).toEqual([0, ''])
    expect(printed).toEndWith(`Settings come from the environment:\n${settingsHelp()}\n`)
    const lines = settingsHelp().split('\n')
    expect(lines.map((line) => line.trim().split(' ')[0])).toEqual(names)
    for (const [i, name] of names.entries()) {
      expect(lines[i]).toEndWith(` ${settings[name].help} (default: ${settings[name].initial})`)
    }
  })
})

interface Moves {
  [verb: string]: { from: readonly string[]; to: string }
}

describe('a state diagram', () => {
  const tables = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => {
    return file.endsWith('.ts') && /^export const moves\b/m.test(textOf(join('src', file)))
  })

  test('is drawn for everything that has a status', () => {
    expect(tables).toContain('tenants/tenant.ts')
  })

  test.each(tables)('of %s shows its statuses and its moves, and its table allows the same', async (file) => {
    const { moves } = (await import(join(root, 'src', file))) as { moves: Moves }
    const feature = dirname(file)
    const allowed = Object.values(moves).flatMap(({ from, to }) =>
      from.map((status) => `${status} --> ${to}`),
    )
    const statuses = new Set(allowed.flatMap((move) => move.split(' --> ')))
    const page = textOf(`docs/${feature}.md`)
    const [, diagram] = /```mermaid\nstateDiagram-v2\n([\s\S]*?)```/.exec(page)!
    const drawn = [...diagram!.matchAll(/^\s*(\w+) --> (\w+)/gm)].map(([, from, to]) => [from!, to!] as const)
    const between = drawn.filter(([from, to]) => statuses.has(from) && statuses.has(to))
    expect([...new Set(between.map((move) => move.join(' --> ')))].toSorted()).toEqual(
      [...new Set(allowed)].toSorted(),
    )
    expect(diagram).toMatch(/^\s*\[\*\] --> \w+/m)

    const table = feature.replaceAll('-', '_')
    const created = migrations
      .map(({ text }) => text)
      .join('\n')
      .match(new RegExp(`create table ${table}(_items)? \\([^;]*`))![0]
    const [, list] = /status \{text\} not null check \(status in \(([^)]*)\)\)/.exec(created)!
    expect(
      list!
        .split(', ')
        .map((item) => item.slice(1, -1))
        .toSorted(),
    ).toEqual([...statuses].toSorted())
  })
})

describe('ARCHITECTURE.md', () => {
  test('names every folder of the source', () => {
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((it) => it.isDirectory())
    const page = textOf('ARCHITECTURE.md')
    expect(folders.filter(({ name }) => !page.includes(`\`${name}/\``)).map(({ name }) => name)).toEqual([])
  })
})

describe('the pages', () => {
  test('name every route with its method, and none that is gone', () => {
    const known = routes.map(({ route }) => `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}')}`)
    const named = pages().flatMap((page) => {
      return [...textOf(page).matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s`?]*)/g)].map(
        ([, method, path]) => {
          return { page, title: `${method} ${path}`, generic: !/[{}]/.test(path!) }
        },
      )
    })
    // A path alone, in the form of code, is its GET.
    const alone = pages().flatMap((page) =>
      [...textOf(page).matchAll(/`(\/[^\s`?]*)`/g)].map(([, path]) => `GET ${path}`),
    )
    const found = new Set([...named.map(({ title }) => title), ...alone])
    expect(known.filter((title) => !found.has(title))).toEqual([])
    expect(named.filter(({ title, generic }) => !generic && !known.includes(title))).toEqual([])
  })

  test('about idempotency name every POST that creates', () => {
    const [, list = ''] = /taken by every `POST` that creates: ([^.]+)\./.exec(textOf('docs/idempotency.md'))!
    const creating = routes.flatMap(({ route }) =>
      route.create ? [route.path.replace(/:(\w+)/g, '{$1}')] : [],
    )
    expect([...list.matchAll(/`(\S+)`/g)].map(([, path]) => path!).toSorted()).toEqual(creating.toSorted())
  })

  test('about heavy reads name every route that is one', () => {
    const [, list = ''] = /are heavy: ([^.]+)\./.exec(textOf('docs/http.md'))!
    const heavy = routes.flatMap(({ route }) => (route.heavy ? [route.path.replace(/:(\w+)/g, '{$1}')] : []))
    expect([...list.matchAll(/`(\S+)`/g)].map(([, path]) => path!).toSorted()).toEqual(heavy.toSorted())
  })

  test('link to what is there', () => {
    const links = pages().flatMap((page) =>
      [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target]) =>
        /^[a-z]+:/.test(target!) ? [] : [{ page, target: target! }],
      ),
    )
    expect(links.length).toBeGreaterThan(10)
    expect(links.filter(({ page, target }) => !leadsSomewhere(page, target))).toEqual([])
  })

  test('are all reached from README.md', () => {
    const reached = new Set<string>()
    const follow = (page: string): void => {
      if (reached.has(page) || !pages().includes(page)) return
      reached.add(page)
      for (const [, target] of textOf(page).matchAll(/\]\(([^)\s#]+)/g))
        follow(normalize(join(dirname(page), target!)))
    }
    follow('README.md')
    expect(pages().filter((page) => !reached.has(page))).toEqual([])
  })
})

/** The variables that the command line reads from the environment. */
function namesOfCommandLine(): string[] {
  const files = readdirSync(join(root, 'cli'), { recursive: true, encoding: 'utf8' })
  const found = files.flatMap((file) =>
    file.endsWith('.ts')
      ? [...textOf(join('cli', file)).matchAll(/\benv\.([A-Z]\w+)/g)].map(([, name]) => name!)
      : [],
  )
  expect(found).toContain('WAYSTATION_KEY')
  return found
}

/** Every Markdown page of the project. */
function pages(): string[] {
  const of_docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((file) =>
    join('docs', file),
  )
  const others = readdirSync(root).concat(readdirSync(join(root, 'bench')).map((file) => join('bench', file)))
  return [...others, ...of_docs].filter((file) => file.endsWith('.md')).toSorted()
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** The text under each heading of the third level. */
function sectionsOf(page: string): { title: string; text: string }[] {
  return textOf(page)
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [title, ...lines] = section.split('\n')
      return { title: title!.replaceAll('`', '').trim(), text: lines.join('\n').split(/^## /m)[0]!.trim() }
    })
}

function leadsSomewhere(page: string, target: string): boolean {
  const [path, anchor] = target.split('#', 2)
  const file = path === '' ? page : normalize(join(dirname(page), path!))
  if (!existsSync(join(root, file))) return false
  return anchor === undefined || anchorsOf(textOf(file)).includes(anchor)
}

/** As GitHub makes them: lower case, punctuation gone, spaces to dashes. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )
}
