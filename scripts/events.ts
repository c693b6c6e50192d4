// Writes the tables of event types in docs/events.md from what the features declare. A test fails when the file in git is
// not this.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import type { EventType } from '../src/contract/event.ts'
import { event_types } from '../src/features.ts'

const file = join(import.meta.dir, '..', 'docs', 'events.md')
const generated = /(<!-- events -->\n)[\s\S]*?(<!-- \/events -->)/

/** The text of docs/events.md, with the tables of these types. */
export function eventsText(page = readFileSync(file, 'utf8'), types = event_types): string {
  if (!generated.test(page)) throw new Error('docs/events.md has no place for the tables')
  return page.replace(generated, (_, begin: string, end: string) => `${begin}\n${tables(types)}\n\n${end}`)
}

/** A table for each kind of subject, in the order of the features. */
function tables(types: ReadonlyMap<string, EventType>): string {
  const by_noun = Map.groupBy(types.values(), ({ name }) => nounOf(name))
  return [...by_noun].map(([noun, own]) => section(noun, own)).join('\n\n')
}

function nounOf(name: string): string {
  return name.slice(0, name.indexOf('.'))
}

function section(noun: string, types: readonly EventType[]): string {
  const head = ['| Type | When | Subject | Data | Workflow |', '|---|---|---|---|---|']
  return [`### ${noun}`, '', ...head, ...types.map(row)].join('\n')
}

function row(type: EventType): string {
  const cells = [`\`${type.name}\``, type.about, `\`${type.subject}\``, dataOf(type), countsOf(type)]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`.replaceAll(
    /\| {2}(?=\|)/g,
    '| ',
  )
}

function dataOf({ data }: EventType): string {
  return Object.entries(data).map(memberOf).join(' ')
}

/** A member with its kind; a description begins with a capital and ends with a full stop. */
function memberOf([name, schema]: [string, TSchema]): string {
  const { anyOf } = schema as { anyOf?: TSchema[] }
  const shown = (anyOf?.[0] ?? schema) as Shown
  const kind = `${kindOf(shown)}${anyOf ? ' or null' : ''}`
  return [`\`${name}\`: ${kind}.`, shown.description ?? ''].join(' ').trim()
}

function kindOf({ type = 'string', format, enum: values }: Shown): string {
  if (values) return values.map((value) => `\`${value}\``).join(' or ')
  return format === 'date-time' ? 'time' : type
}

interface Shown {
  type?: string
  format?: string
  enum?: string[]
  description?: string
}

/** The counts of its workflow that it changes. */
function countsOf({ waiting, failing }: EventType): string {
  const parts = [
    [waiting, 'waiting'],
    [failing, 'failing'],
  ] as const
  return parts.flatMap(([by, name]) => (by === 0 ? [] : [`${name} ${by > 0 ? '+1' : '−1'}`])).join(', ')
}

if (import.meta.main) await Bun.write(file, eventsText())
