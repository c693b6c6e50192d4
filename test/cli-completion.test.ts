// The completion scripts, by the shells that are installed.

import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bench, everyCommand, runInside } from './support/cli.ts'

const bench = new Bench()
afterAll(() => bench.clean())

describe('Completion', () => {
  const scripts = ['bash', 'zsh', 'fish'] as const
  const scriptOf = async (shell: string) => (await runInside(['completion', shell])).stdout

  test.each(scripts)('for %s knows every command and every option', async (shell) => {
    const script = await scriptOf(shell)
    for (const { words, command } of everyCommand().filter(({ command }) => command.name() !== 'help')) {
      expect(script).toContain(`/${words.join('/')}`)
      for (const { long } of command.options) {
        expect(script).toContain(shell === 'fish' ? ` -l ${long!.slice(2)} ` : long!)
      }
    }
  })

  test.each(scripts.filter((shell) => Bun.which(shell)))(
    'for %s is read without complaint',
    async (shell) => {
      const file = join(bench.folder(), 'script')
      writeFileSync(file, await scriptOf(shell))
      const { code, stdout, stderr } = await bench.run(['-n', file], {}, { command: [shell] })
      expect([code, stdout, stderr]).toEqual([0, '', ''])
    },
  )

  test('for zsh closes what it opens, as a related shell sees it', async () => {
    const file = join(bench.folder(), 'script')
    writeFileSync(file, await scriptOf('zsh'))
    const { code, stderr } = await bench.run(['-n', file], {}, { command: ['bash'] })
    expect([code, stderr]).toEqual([0, ''])
  })

  const offered: [line: string, words: string[]][] = [
    ['waystation k', ['key', 'kv']],
    ['waystation kv ', ['get', 'put', 'delete', 'list', 'help']],
    ['waystation --profile x --json kv pu', ['put']],
    ['waystation dlq list --status c', ['claimed']],
    ['waystation dlq list --st', ['--status']],
    ['waystation dlq list --status = c', ['claimed']],
    ['waystation dlq list --status =', ['failed', 'claimed', 'resolved', 'archived']],
    ['waystation dlq list --status = failed --js', ['--json']],
    ['waystation kv put state k --file ', []],
    ['waystation completion ', ['bash', 'zsh', 'fish']],
    ["waystation kv put state '$(touch evaluated)' --if-a", ['--if-absent']],
  ]
  test.each(offered)('in bash offers after %j what fits', async (line, words) => {
    const folder = bench.folder()
    writeFileSync(join(folder, 'script'), await scriptOf('bash'))
    const typed = line.split(' ').map((word) => `"${word.replaceAll('$', '\\$')}"`)
    const ask = `COMP_WORDS=(${typed.join(' ')}); COMP_CWORD=${typed.length - 1}; _waystation; printf '%s\\n' "\${COMPREPLY[@]}"; ls`
    const { code, stdout, stderr } = await bench.run(
      ['-c', `. ./script; ${ask}`],
      {},
      { command: ['bash'], cwd: folder },
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.trim().split('\n')).toEqual([...words, 'script'])
  })

  /** The words that are offered where the cursor stands behind `line`, one a line. */
  const asked = {
    zsh: (line: string) => `
      compset() { words[CURRENT]=\${words[CURRENT]#*=} }
      _describe() { print -l -- \${(M)\${list%%:*}:#\${words[CURRENT]}*} }
      _files() {}
      compdef() {}
      source ./script
      words=(${line}) CURRENT=\${#words}
      _waystation`,
    fish: (line: string) => `source ./script; complete -C ${JSON.stringify(line)} | cut -f 1`,
  }
  const shells = (['zsh', 'fish'] as const).filter((shell) => Bun.which(shell))
  const offered_elsewhere: [line: string, words: string[]][] = [
    ['waystation kv pu', ['put']],
    ['waystation dlq list --st', ['--status']],
    ['waystation dlq list --json --status c', ['claimed']],
    ['waystation dlq list --json --status=c', ['claimed']],
    ['waystation kv get --hel', ['--help']],
  ]
  test.each(shells.flatMap((shell) => offered_elsewhere.map((each) => [shell, ...each] as const)))(
    'in %s offers after %j what fits',
    async (shell, line, words) => {
      const folder = bench.folder()
      writeFileSync(join(folder, 'script'), await scriptOf(shell))
      const { code, stdout } = await bench.run(
        ['-c', asked[shell](line)],
        {},
        { command: [shell], cwd: folder },
      )
      const given = stdout
        .trim()
        .split('\n')
        .map((word) => word.replace(/^--status=(?=.)/, ''))
      expect([code, given]).toEqual([0, words])
    },
  )
})
