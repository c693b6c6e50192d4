// The form of generated Python.

import { wrapped } from './print.ts'

export const python_header = '# Made from openapi.json by scripts/clients.ts: do not edit.\n'

const columns_max = 118

/** A docstring; `more` are lines below its text, such as one for each argument. */
export function docstring(text: string, indent: string, more: string[] = []): string {
  const safe = (part: string) => part.replaceAll('\\', '\\\\').replaceAll('"""', "'''").split(/\s+/)
  const lines = wrapped(safe(text), columns_max - indent.length - 3)
  const below = more.flatMap((part) => wrapped(safe(part), columns_max - indent.length, '    '))
  const whole = [...lines, ...(below.length > 0 ? ['', ...below] : [])]
  const [only] = whole
  if (whole.length === 1 && `${indent}"""${only}"""`.length <= columns_max + 2)
    return `${indent}"""${only}"""\n`
  const body = whole.map((line, at) => (at === 0 || line === '' ? line : `${indent}${line}`)).join('\n')
  return `${indent}"""${body}\n${indent}"""\n`
}

/** `name(first, second)` on one line, or with a line for each. */
export function call(head: string, parts: string[], tail: string, indent: string): string {
  const line = `${indent}${head}${parts.join(', ')}${tail}`
  if (line.length <= columns_max && !line.includes('\n')) return `${line}\n`
  return `${indent}${head}\n${parts.map((part) => `${indent}    ${part}${part === '/' ? '' : ','}\n`).join('')}${indent}${tail}\n`
}

/** `rotateSigningSecret` is `rotate_signing_secret`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
