// The output: tables and colours on a terminal, tabs in a pipe, JSON with --json.

import { stringWidth } from 'bun'
import type { Failure } from './failures.ts'
import { asStarted } from './hints.ts'
import type { Io, Sink } from './io.ts'
import { isObject, jsonText, visible, visibleLines } from './text.ts'

const styles = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const
type Style = keyof typeof styles

/** Words of a status and how they are coloured. */
const meanings: Record<string, Style> = {
  ...wordsOf('green', ['active', 'alive', 'approved', 'delivered', 'fired', 'ready', 'resolved']),
  ...wordsOf('yellow', ['claimed', 'pending', 'pending_deletion']),
  ...wordsOf('red', ['expired', 'failed', 'interrupted', 'rejected']),
  ...wordsOf('dim', ['archived', 'cancelled', 'none']),
}

/** Any JSON, shown as JSON and not as fields. */
const any_json = ['payload', 'callback_payload', 'metadata', 'body', 'headers', 'query', 'details']

export class Output {
  readonly json: boolean
  readonly #stdout: Sink
  readonly #stderr: Sink
  readonly #plain: boolean
  /** Of the columns so far; undefined before the header. */
  #widths: readonly number[] | undefined

  readonly #command: string

  constructor({ stdout, stderr, env, command }: Io, json: boolean) {
    this.json = json
    this.#stdout = stdout
    this.#stderr = stderr
    this.#command = command
    this.#plain = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb'
  }

  get on_terminal(): boolean {
    return this.#stdout.isTTY === true
  }

  /** One JSON value. */
  value(value: unknown): void {
    this.#stdout.write(`${jsonText(value, this.on_terminal ? 2 : 0)}\n`)
  }

  /** One JSON value on one line, of many. */
  jsonLine(value: unknown): void {
    this.#stdout.write(`${jsonText(value)}\n`)
  }

  /** Text that is safe already, or must stay as it is. */
  text(text: string): void {
    this.#stdout.write(`${text}\n`)
  }

  /** A text that is the answer; with --json a string. */
  document(text: string): void {
    if (this.json) this.value(text)
    else this.text(text)
  }

  /** A text that the service keeps: in a pipe as it is, on a terminal without what a terminal would obey. */
  stored(text: string): void {
    this.text(this.on_terminal ? visibleLines(text) : text)
  }

  /** One object, a field a line. */
  record(value: object): void {
    if (this.json) {
      this.value(value)
      return
    }
    const fields = fieldsOf(value)
    const width = Math.max(...fields.map(([name]) => name.length))
    for (const [name, text] of fields) {
      if (!this.on_terminal) this.text(`${name}\t${text}`)
      else this.text(`${this.#styled(this.#stdout, 'bold', name.padEnd(width))}  ${this.#cell(text)}`)
    }
  }

  /** A sentence, when there is nothing else to show. */
  done(sentence: string, value: object): void {
    if (this.json) this.value(value)
    else this.text(visible(sentence))
  }

  /** Aligned under a header on a terminal, tab-separated without one in a pipe. May be called once a page. */
  table(items: readonly object[], columns: readonly string[]): void {
    const rows = items.map((item) => columns.map((column) => cellOf(memberOf(item, column), column)))
    if (!this.on_terminal) {
      for (const row of rows) this.text(row.join('\t'))
      return
    }
    if (rows.length === 0) return
    const before = this.#widths
    const widths = columns.map((column, i) =>
      Math.max(before?.[i] ?? column.length, ...rows.map((row) => stringWidth(row[i]!))),
    )
    if (!before) this.#row(columns, widths, (text) => this.#styled(this.#stdout, 'bold', text))
    this.#widths = widths
    for (const row of rows) this.#row(row, widths, (text) => this.#cell(text))
  }

  /** Cut at the right edge of the terminal. */
  #row(cells: readonly string[], widths: readonly number[], shown: (text: string) => string): void {
    const line = cells.map((cell, i) => {
      const room = ' '.repeat(Math.max(0, widths[i]! - stringWidth(cell)))
      return i === cells.length - 1 ? shown(cell) : shown(cell) + room
    })
    this.text(Bun.sliceAnsi(line.join('  '), 0, this.#stdout.columns || 80, { ellipsis: '…' }))
  }

  #cell(text: string): string {
    const style = Object.hasOwn(meanings, text) ? meanings[text] : undefined
    return style === undefined ? text : this.#styled(this.#stdout, style, text)
  }

  /** A remark beside the output, for people only. `end`: a value behind it, in which nothing is named as it was started. */
  note(text: string, end = ''): void {
    const shown = visible(this.hint(text) + end)
    if (!this.json) this.#stderr.write(`${this.#styled(this.#stderr, 'dim', shown)}\n`)
  }

  /** With the command as it was started. */
  hint(text: string): string {
    return asStarted(text, this.#command)
  }

  failure({ code, message, next: step, request_id, exit_code, ...rest }: Failure): void {
    const next = this.hint(step)
    if (this.json) {
      const error = {
        code,
        message,
        ...rest,
        ...(request_id === undefined ? {} : { request_id }),
        next,
        exit_code,
      }
      this.#stderr.write(`${jsonText({ error })}\n`)
      return
    }
    const found_by = request_id === undefined ? '' : ` (${visible(request_id)})`
    const name = this.#styled(this.#stderr, 'red', visible(code))
    this.#stderr.write(`waystation: ${name}: ${visible(message)}${found_by} Next: ${visible(next)}\n`)
  }

  #styled(sink: Sink, style: Style, text: string): string {
    return sink.isTTY !== true || this.#plain ? text : `\x1b[${styles[style]}m${text}\x1b[0m`
  }
}

function wordsOf(style: Style, words: string[]): Record<string, Style> {
  return Object.fromEntries(words.map((word) => [word, style]))
}

/** `callback.status` is a member of a member. */
function memberOf(item: object, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), item)
}

function cellOf(value: unknown, name: string): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'string' && !any_json.includes(name)) return value === '' ? '-' : visible(value)
  return jsonText(value)
}

/** Nested objects become `callback.status`; use and limit of a quota become one field. */
function fieldsOf(value: object, prefix = ''): [name: string, text: string][] {
  return Object.entries(value).flatMap(([name, member]): [string, string][] => {
    const full_name = visible(prefix + name)
    if (!isObject(member) || any_json.includes(name)) return [[full_name, cellOf(member, name)]]
    const { used, limit } = member
    if (used === undefined || limit === undefined) return fieldsOf(member, `${prefix}${name}.`)
    return [
      [full_name, `${cellOf(used, 'used')} of ${limit === null ? 'any number' : cellOf(limit, 'limit')}`],
    ]
  })
}
