// Values from an argument, a file or standard input; durations and numbers.

import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import { RawJson } from '../sdk/src/index.ts'
import type { Cli } from './cli.ts'
import { usageError } from './failures.ts'

export interface ValueOptions {
  file?: string
  string?: boolean
  /** No text will do, so there is no --string. */
  is_object: boolean
}

/** JSON as it was written, or a text as it is. */
export async function requiredValueOf(
  cli: Cli,
  given: string | undefined,
  options: ValueOptions,
): Promise<RawJson | string> {
  const value = await optionalValueOf(cli, given, options)
  if (value !== undefined) return value
  return jsonOf(await stdinText(cli, 'The value is missing: give it, --file, or standard input.'), options)
}

export async function optionalValueOf(
  cli: Cli,
  given: string | undefined,
  options: ValueOptions,
): Promise<RawJson | string | undefined> {
  if (given !== undefined && options.file !== undefined)
    throw usageError('Give the value or --file, not both.')
  if (given !== undefined) return jsonOf(given, options)
  if (options.file === undefined) return undefined
  const text =
    options.file === '-'
      ? await stdinText(cli, 'There is nothing on standard input.')
      : fileText(options.file)
  return jsonOf(text, options)
}

function jsonOf(text: string, { string: as_text, is_object }: ValueOptions): RawJson | string {
  if (as_text) return text
  try {
    return new RawJson(text.trim())
  } catch {
    const or_text = is_object ? '' : ', or pass --string to take it as text'
    throw usageError('The value is not JSON.', `Quote it for the shell${or_text}.`)
  }
}

/** With a byte order mark, which may be the first character of a text that is kept as it is. */
function utf8(): TextDecoder {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
}

/** A file for people or programs, without the byte order mark that some editors put before it. */
export function withoutMark(text: string): string {
  return text.replace(/^\ufeff/, '')
}

export async function stdinText(cli: Cli, when_none: string): Promise<string> {
  const { stdin } = cli.io
  if (stdin.isTTY) throw usageError(when_none)
  const decoder = utf8()
  try {
    let text = ''
    for await (const chunk of stdin)
      text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    return text + decoder.decode()
  } catch (error) {
    if (error instanceof TypeError) throw usageError('Standard input is not UTF-8.')
    throw error
  }
}

export function fileText(path: string): string {
  try {
    return utf8().decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError) throw usageError(`${path} is not UTF-8.`)
    throw usageError(`${path} cannot be read (${(error as { code?: string }).code ?? 'unknown'}).`)
  }
}

const units: Record<string, number> = { '': 1, s: 1, m: 60, h: 3_600, d: 86_400 }

/** `90`, `90s`, `15m`, `2h` or `7d`, as seconds. */
export function seconds(text: string): number {
  const [, digits, unit] = /^(\d{1,12}(?:\.\d{1,6})?)([smhd]?)$/.exec(text) ?? []
  if (digits === undefined)
    throw new InvalidArgumentError('It must be a duration such as 90, 90s, 15m, 2h or 7d.')
  return Math.round(Number(digits) * units[unit!]! * 1e6) / 1e6 // 1.15m is 69 s
}

/** How long to wait. Without any time the wait would be over before its first answer. */
export function waitSeconds(text: string): number {
  const given = seconds(text)
  if (given > 0) return given
  throw new InvalidArgumentError('It must be a duration above 0.')
}

/** The time that is this long from now, by the clock of this machine. */
export function timeFromNow(cli: Cli, seconds_from_now: number, flag: string): string {
  const time = new Date(cli.io.now() + seconds_from_now * 1_000)
  if (time.getUTCFullYear() <= 9999) return time.toISOString()
  throw usageError(`${flag} ends after the year 9999.`)
}

export function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number.')
}

/** JSON as it was written, of an option. */
export function jsonText(text: string): RawJson {
  try {
    return new RawJson(text.trim())
  } catch {
    throw new InvalidArgumentError('It is not JSON: quote it for the shell.')
  }
}

/** `a,b` or `a, b`, behind what the same option was given before. */
export function listOf(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').map((part) => part.trim())]
}

/** As a header may carry it. */
export function idempotencyKey(text: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(text)) return text
  throw new InvalidArgumentError('It must be 1 to 255 ASCII characters without spaces.')
}

/** A time that a timer can wait for. */
export function timeoutSeconds(text: string): number {
  const given = positiveNumber(text)
  if (given >= 0.001 && given <= 86_400) return given
  throw new InvalidArgumentError('It must be from 0.001 to 86400 seconds.')
}

export function positiveNumber(text: string): number {
  if (/^\d{1,15}(\.\d{1,6})?$/.test(text) && Number(text) > 0) return Number(text)
  throw new InvalidArgumentError('It must be a number above 0.')
}
