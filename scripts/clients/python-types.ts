// The types of the Python SDK: a TypedDict for each shape of an answer, and for each object that a call takes.

import type { Document, Schema } from '../../mcp/schema.ts'
import { keyOf } from '../sdk-types.ts'
import { isList, type Operation } from './model.ts'
import { docstring, python_header } from './python-print.ts'

/** A longer list of texts is a type of its own. */
const enum_texts_max = 12

type Direction = 'input' | 'answer'

/** The document, whose components have their names wherever they are used. */
export function namedDocument(document: Document): Document {
  const named = Object.entries(document.components.schemas).map(([name, schema]) => [
    name,
    { 'x-name': name, ...schema },
  ])
  return { ...document, components: { schemas: Object.fromEntries(named) } }
}

export class PythonTypes {
  /** Name to text. */
  readonly #shapes = new Map<string, string>()
  readonly #keys = new Map<string, string>()

  constructor(private readonly document: Document) {}

  /** The type of what an operation of a `namedDocument` answers; of a list, that of an item. */
  answer(operation: Operation): string {
    const name = `${capitalized(operation.id)}Answer`
    const found = operation.answers.map((schema) => {
      if (!schema) return 'None'
      return isList(operation)
        ? this.of(schema.properties!.items!.items ?? {}, `${name}Item`, 'answer')
        : this.of(schema, name, 'answer')
    })
    return unionOf(found)
  }

  /** The types of everything that calls take or answer, which must have been asked for before. */
  text(): string {
    const errors = Object.entries(this.document['x-errors'])
    const exits = [...new Set(errors.map(([, { exit }]) => exit))].toSorted()
    const shapes = [...this.#shapes].toSorted(([one], [other]) => (one < other ? -1 : 1))
    return `"""What calls take and answer. Answers are plain dicts, spelled as on the wire: a member that is newer than this
package is there, too."""

${python_header}
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

ErrorCode = ${literalOf(errors.map(([code]) => code))}
"""Why a request was refused."""

ExitClass = ${literalOf(exits)}
"""The kind of failure that a code is, for scripts: the command line has an exit code for each."""

${shapes.map(([, text]) => text).join('\n\n')}`
  }

  /** `hint`: its name, if it is an object that has none. */
  of(schema: Schema, hint: string, direction: Direction): string {
    const is_input = direction === 'input'
    if (schema['x-any-json'] === 'any') return is_input ? 'object' : 'Any'
    if (schema['x-any-json'] === 'object')
      return is_input ? 'Mapping[str, object] | None' : 'dict[str, Any] | None'
    if (schema.const !== undefined) return literalOf([schema.const])
    if (schema.enum) return this.#enum(schema.enum, schema['x-name'] ?? hint)
    if (schema.anyOf) return unionOf(schema.anyOf.map((one) => this.of(one, hint, direction)))
    if (Array.isArray(schema.type))
      return unionOf(schema.type.map((type) => this.of({ ...schema, type }, hint, direction)))
    if (schema.type === 'array')
      return `${is_input ? 'Sequence' : 'list'}[${this.of(schema.items ?? {}, hint, direction)}]`
    if (schema.properties) return this.#named(schema, schema['x-name'] ?? hint, direction)
    if (schema.type === 'object') {
      const { additionalProperties: values } = schema
      if (typeof values !== 'object') return is_input ? 'Mapping[str, object]' : 'dict[str, Any]'
      return `${is_input ? 'Mapping' : 'dict'}[str, ${this.of(values, hint, direction)}]`
    }
    if (schema.type === undefined) return is_input ? 'object' : 'Any'
    if (is_input && schema.format === 'date-time') return 'str | datetime'
    const known = primitives[schema.type]
    if (!known) throw new Error(`no type for ${JSON.stringify(schema)}`)
    return known
  }

  #enum(texts: unknown[], name: string): string {
    if (texts.length <= enum_texts_max) return literalOf(texts)
    this.#shapes.set(name, `${name} = ${literalOf(texts)}\n`)
    return name
  }

  #named(schema: Schema, name: string, direction: Direction): string {
    const key = keyOf(schema)
    if (this.#keys.has(name)) {
      // One of two directions with the same shape stands for both.
      if (this.#keys.get(name) !== key) throw new Error(`two shapes are named ${name}`)
      return name
    }
    this.#keys.set(name, key)
    this.#shapes.set(name, '')
    this.#shapes.set(name, this.#class(schema, name, direction))
    return name
  }

  /** Members that need not be there are in a class of their own, and so are names that Python has for itself. */
  #class(
    { properties = {}, required = [], description }: Schema,
    name: string,
    direction: Direction,
  ): string {
    const members = Object.entries(properties).map(([member, schema]) => ({
      name: member,
      type: this.of(schema, `${name}${capitalized(member)}`, direction),
      description: schema['x-name'] ? undefined : describedBy(schema),
      is_required: required.includes(member),
    }))
    const bases: string[] = []
    let text = ''
    for (const is_required of [true, false]) {
      const odd = members.filter((one) => one.is_required === is_required && python_words.has(one.name))
      if (odd.length === 0) continue
      const base = `_${name}${is_required ? 'Required' : 'Optional'}`
      const fields = odd.map((one) => `"${one.name}": "${one.type.replaceAll('"', "'")}"`).join(', ')
      text += `${base} = TypedDict("${base}", {${fields}}${is_required ? '' : ', total=False'})\n\n\n`
      bases.push(base)
    }
    const plain = members.filter((one) => !python_words.has(one.name))
    const [needed, rest] = [plain.filter((one) => one.is_required), plain.filter((one) => !one.is_required)]
    if (needed.length > 0 && rest.length > 0) {
      text += `class _${name}(TypedDict):\n${needed.map(memberText).join('')}\n\n`
      bases.push(`_${name}`)
    }
    const total = needed.length > 0 && rest.length === 0 ? '' : ', total=False'
    const own = rest.length > 0 ? rest : needed
    const body =
      [description ? `${docstring(description, '    ')}\n` : '', ...own.map(memberText)].join('') ||
      '    pass\n'
    return `${text}class ${name}(${bases.join(', ') || 'TypedDict'}${total}):\n${body}`
  }
}

function memberText({
  name,
  type,
  description,
}: {
  name: string
  type: string
  description?: string | undefined
}) {
  const line = `    ${name}: ${type}\n`
  return description ? `${line}${docstring(description, '    ')}` : line
}

const primitives: Record<string, string> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
}

/** Words of the language, which cannot be names. */
export const python_words = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import
  in is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
)

/** Of what may be null, the other alternative has the words. */
export function describedBy({ description, anyOf = [] }: Schema): string | undefined {
  return description ?? anyOf.find((one) => one.description && !one['x-name'])?.description
}

export function literalOf(values: unknown[]): string {
  const texts = values.map((value) =>
    typeof value === 'string' ? JSON.stringify(value) : value ? 'True' : 'False',
  )
  const line = `Literal[${texts.join(', ')}]`
  return line.length <= 110 ? line : `Literal[\n${texts.map((text) => `    ${text},\n`).join('')}]`
}

export function unionOf(types: string[]): string {
  const members = [...new Set(types.flatMap((type) => (type.includes('[') ? [type] : type.split(' | '))))]
  return [...members.filter((one) => one !== 'None'), ...members.filter((one) => one === 'None')].join(' | ')
}

export function capitalized(name: string): string {
  return name[0]!.toUpperCase() + name.slice(1).replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}
