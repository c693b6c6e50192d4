// The Python SDK: a class for each resource, the client that has them all, the table of operations, the rules of its retries.
// The text is that of the async client; scripts/clients/python-sync.ts makes the other one of it.

import type { Document } from '../../mcp/schema.ts'
import type { Done } from '../../src/contract/clients.ts'
import { docOf, type Field, isList, methodOf, type Operation, resourceOf, restOfBody } from './model.ts'
import { call, docstring, python_header, snake } from './python-print.ts'
import { capitalized, describedBy, type PythonTypes, python_words } from './python-types.ts'

/** They iterate, wait, or narrow what the contract takes: sdk-python/src/waystation/_async. */
const by_hand = ['inboxes.messages', 'events.list', 'wait', 'rateLimit.check']

/** The text of sdk-python/src/waystation/_async/resources.py. */
export function pythonResources(operations: Operation[], types: PythonTypes): string {
  const printer = new Printer(types)
  const named = operations.filter(({ sdk }) => sdk)
  const made = named.filter(({ sdk }) => !by_hand.includes(sdk!.name))
  for (const operation of named) printer.know(operation)
  const resources = [...new Set(made.map(resourceOf))].filter((name) => name !== '')
  const classes = resources.map((name) => {
    const methods = made.filter((operation) => resourceOf(operation) === name)
    return `class ${classOf(name)}(AsyncResource):\n${methods.map((one) => printer.method(one)).join('\n')}`
  })
  const own = made.filter((operation) => resourceOf(operation) === '').map((one) => printer.method(one))
  const attributes = resources.map((name) => `        self.${snake(name)} = ${classOf(name)}(transport)\n`)
  return `"""The resources of the client, each with a method for every operation."""

${python_header}
from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .._values import NOT_GIVEN, CallOptions, CreateOptions, NotGiven, fields, if_match
from ..types import (
${[...printer.imported]
  .toSorted()
  .map((name) => `    ${name},\n`)
  .join('')})
from .pages import AsyncPages, list_of, offset_list_of
from .transport import AsyncTransport, Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport


${classes.join('\n\n')}

class AsyncResources:
    """The client with its resources."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
${attributes.join('')}
${own.join('\n')}`
}

function classOf(resource: string): string {
  return `Async${capitalized(resource)}`
}

interface Parameter {
  text: string
  doc: string | undefined
}

class Printer {
  /** Of types.py. */
  readonly imported = new Set<string>()

  constructor(private readonly types: PythonTypes) {}

  /** Its types are in types.py, also when its method is by hand. */
  know(operation: Operation): void {
    this.types.answer(operation)
    for (const field of [...operation.body_fields, ...operation.query_fields]) this.typeOf(operation, field)
  }

  method(operation: Operation): string {
    const { path_fields, sdk, body_fields, query_fields, conditional, creates } = operation
    const own = body_fields.filter(({ name }) => sdk!.arguments?.includes(name))
    const named = [...restOfBody(operation), ...query_fields].toSorted(
      (a, b) => Number(b.required) - Number(a.required),
    )
    const positional = [...path_fields, ...own].map((field) =>
      this.parameter(operation, { ...field, required: true }),
    )
    const keywords = named.map((field) => this.parameter(operation, field))
    if (conditional)
      keywords.push({ text: 'if_version: int | None = None', doc: 'only if this version is the stored one.' })
    const star = keywords.length > 0 ? ['*'] : []
    const options = `**options: Unpack[${creates ? 'CreateOptions' : 'CallOptions'}]`
    const parameters = ['self', ...positional.map(textOf), ...star, ...keywords.map(textOf), options]
    const answer = this.use(this.types.answer(operation))
    const returned = isList(operation) ? `AsyncPages[${answer}]` : answer
    const async = isList(operation) ? '' : 'async '
    const docs = [...positional, ...keywords].flatMap(({ text, doc }) =>
      doc ? [`${text.split(':')[0]}: ${doc}`] : [],
    )
    const head = call(`${async}def ${snake(methodOf(operation))}(`, parameters, `) -> ${returned}:`, '    ')
    return `${head}${docstring(docOf(operation, 'Raises'), '        ', docs)}${this.body(operation, answer)}`
  }

  parameter(operation: Operation, field: Field): Parameter {
    const { name, required, schema } = field
    const type = this.use(this.typeOf(operation, field))
    const doc = describedBy(schema)?.replace(/\s+/g, ' ')
    const text = `${argument(name)}: `
    if (required) return { text: `${text}${type}`, doc }
    if (isNullable(type))
      return {
        text: `${text}${withoutNone(type)} | NotGiven${type === 'object' ? '' : ' | None'} = NOT_GIVEN`,
        doc,
      }
    return { text: `${text}${type} | None = None`, doc }
  }

  typeOf({ id }: Operation, { name, schema }: Field): string {
    if (schema['x-flag']) return 'bool'
    return this.types.of(schema, `${capitalized(id)}${capitalized(name)}`, 'input')
  }

  /** Remembers the types that must be imported. */
  use(type: string): string {
    for (const [name] of type.replace(/"[^"]*"/g, '').matchAll(/\b[A-Z]\w*/g))
      if (!not_ours.has(name)) this.imported.add(name)
    return type
  }

  body(operation: Operation, answer: string): string {
    const { id, pages, path_fields, query_fields, body_fields } = operation
    const params = `{${path_fields.map(({ name }) => `"${name}": ${argument(name)}`).join(', ')}}`
    const query = this.fields(operation, query_fields)
    if (isList(operation)) {
      const list = pages === 'cursor' ? 'list_of' : 'offset_list_of'
      return `        given_ = ${query}\n        return ${list}(self._transport, "${id}", ${params}, given_, options)\n`
    }
    const members = [
      path_fields.length > 0 ? `params=${params}` : '',
      query_fields.length > 0 ? `query=${query}` : '',
      body_fields.length > 0 ? `body=${this.fields(operation, body_fields)}` : '',
      operation.conditional ? 'headers=if_match(if_version)' : '',
      query_fields.some(({ name }) => name === 'wait') ? 'held_ms=(wait or 0) * 1_000' : '',
    ].filter((text) => text !== '')
    const given = call('given_ = Input(', members, ')', '        ')
    if (answer === 'None') return `${given}        await self._transport.call("${id}", given_, options)\n`
    return `${given}        answer_: ${answer} = await self._transport.call("${id}", given_, options)\n        return answer_\n`
  }

  /** Members whose null counts are exact; of the others None means that they are not given. */
  fields(operation: Operation, all: Field[]): string {
    const exact = all.filter((field) => field.required || isNullable(this.typeOf(operation, field)))
    const optional = all.filter((field) => !exact.includes(field))
    const dict = (some: Field[]) => `{${some.map((field) => `"${field.name}": ${sentOf(field)}`).join(', ')}}`
    return `fields(${dict(exact)}${optional.length > 0 ? `, ${dict(optional)}` : ''})`
  }
}

const not_ours = new Set(['Any', 'Literal', 'Mapping', 'Sequence', 'None', 'NotGiven', 'True', 'False'])

function textOf({ text }: Parameter): string {
  return text
}

/** `windowSeconds` is `window_seconds`, `from` is `from_`. */
function argument(name: string): string {
  const own = snake(name)
  return python_words.has(own) ? `${own}_` : own
}

function sentOf({ name, schema }: Field): string {
  return schema['x-flag'] ? `"true" if ${argument(name)} else None` : argument(name)
}

/** None is a value of its own, not the absence of one. */
function isNullable(type: string): boolean {
  return type === 'object' || type.endsWith('| None')
}

function withoutNone(type: string): string {
  return type.replace(/ \| None$/, '')
}

/** The text of sdk-python/src/waystation/_operations.py. */
export function pythonOperations(operations: Operation[], document: Document): string {
  const rows = operations
    .filter(({ sdk }) => sdk)
    .map(({ id, method, path, creates, wrapped, has_empty, answer_member }) => {
      const marks = [
        ...(creates ? ['creates=True'] : []),
        ...(wrapped ? ['wrapped=True'] : []),
        ...(has_empty ? ['empty=True'] : []),
        ...(answer_member ? [`has="${answer_member}"`] : []),
      ]
      return `    "${id}": Operation(${[JSON.stringify(method), JSON.stringify(path), ...marks].join(', ')}),\n`
    })
  const errors = Object.entries(document['x-errors']).map(
    ([code, { next, exit }]) =>
      `    "${code}": (\n        ${JSON.stringify(next)},\n        "${exit}",\n    ),\n`,
  )
  return `"""Every operation of the contract, and the caller's next step after each code."""

${python_header}
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .types import ExitClass


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    creates: bool = False
    """Takes an Idempotency-Key."""
    wrapped: bool = False
    """Answers \`\`{success, data}\`\`."""
    empty: bool = False
    """An answer may have no body."""
    has: str | None = None
    """A member of every answer with a body."""


operations: Final[Mapping[str, Operation]] = {
${rows.join('')}}

error_rows: Final[Mapping[str, tuple[str, ExitClass]]] = {
${errors.join('')}}
`
}

/** The text of sdk-python/src/waystation/_retries.py: the rules that the TypeScript SDK has. */
export function pythonRetries(operations: Operation[]): string {
  const rules = operations.flatMap(({ id, sdk }) => {
    if (!sdk?.retry) return []
    const { safe, why, done } = sdk.retry
    const parts = [`why=${JSON.stringify(why)}`]
    if (typeof safe === 'boolean') {
      if (!safe) parts.push('safe=False')
    } else if ('with' in safe) parts.push(`with_=${JSON.stringify(safe.with)}`)
    else parts.push(`without=(${safe.without.map((name) => `${JSON.stringify(name)}, `).join('')})`)
    if (done)
      parts.push(
        `done=(${[done]
          .flat()
          .map((one) => `${doneText(one)}, `)
          .join('')})`,
      )
    return [call(`"${id}": Retry(`, parts, '),', '    ')]
  })
  return `"""When a request whose outcome is unknown is sent again."""

${python_header}
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ._repeats import Done, Retry

retries: Final[Mapping[str, Retry]] = {
${rules.join('')}}
`
}

function doneText(done: Done): string {
  const parts = Object.entries(done).map(([name, value]) => `${name}=${pythonOf(value)}`)
  return `Done(${parts.join(', ')})`
}

function pythonOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}: ${pythonOf(member)}`)
    .join(', ')}}`
}
