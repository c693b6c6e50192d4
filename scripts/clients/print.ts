// The form of generated code.

export const header = '// Made from openapi.json by scripts/clients.ts: do not edit.\n'

const columns_max = 100

/** A comment of one line or more; nothing for an empty text. */
export function commentOf(text: string, indent: string): string {
  if (text === '') return ''
  const lines = wrapped(text.split(' '), columns_max)
  if (lines.length === 1) return `${indent}/** ${text} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

/** Lines of these words, of so many columns at most; each after the first begins with `further`. */
export function wrapped(words: readonly string[], columns: number, further = ''): string[] {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last === undefined) lines.push(word)
    else if (last.length + 1 + word.length > columns) lines.push(further + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** The name of a member, quoted where it must be. */
export function identifier(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`
}

/** As the linter of the project wants it. */
export function formatted(text: string, file: string): string {
  const biome = new URL('../../node_modules/.bin/biome', import.meta.url).pathname
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    [biome, 'check', '--write', `--stdin-file-path=${file}`],
    { stdin: new TextEncoder().encode(text), cwd: new URL('../..', import.meta.url).pathname },
  )
  if (exitCode !== 0) throw new Error(`${file}: ${stderr}\n${text}`)
  return stdout.toString()
}
