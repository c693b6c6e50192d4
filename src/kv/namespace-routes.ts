// /v1/namespaces: which there are, and keys and values of all agents for the admin.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { pageRequest, pageUpTo } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Nullable, Page, PageQuery, Shape } from '../contract/schemas.ts'
import { ownerOf } from './entry.ts'
import { namespaces } from './lists.ts'
import {
  Entry,
  entryRead,
  KeyPage,
  KeyQuery,
  key,
  key_columns,
  keysListed,
  namespace,
  read_headers,
  tag,
  version_header,
} from './shapes.ts'

export const listNamespaces = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces',
  tag,
  summary: 'List the namespaces that hold a key, in bytewise order',
  description: 'An agent sees those that it may read; the admin key the private ones of all agents, too.',
  sdk: { name: 'namespaces.list' },
  cli: {
    usage: 'namespace list',
    about: 'List the namespaces that hold a key',
    group: 'Namespaces; keys and values of all agents with the admin key',
    examples: ['waystation namespace list --all'],
    columns: ['namespace', 'agent_id'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object(PageQuery),
  replies: {
    200: {
      body: Page(
        Shape('Namespace', {
          namespace: Type.String(),
          agent_id: Nullable(
            Type.String({ description: 'The agent whose private namespace it is; null for a shared one.' }),
          ),
        }),
      ),
    },
  },
  errors: [],
  async handle(context, { query }) {
    const { db, caller, now } = context
    const { rows_max, after } = pageRequest(context, query)
    const [namespace = '', key = null] = (after ?? []) as [string?, string?]
    const place = { namespace, key: after ? key : '' }
    const { names, next } = await namespaces(db, caller, place, now, rows_max - 1)
    const items = names.map((name) => ({ namespace: name, agent_id: ownerOf(name) }))
    return pageUpTo(context, items, next && [next.namespace, ...(next.key === null ? [] : [next.key])])
  },
})

export const listNamespaceKeys = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace/keys',
  tag,
  summary: 'List the keys of any namespace, in bytewise order',
  sdk: { name: 'namespaces.keys' },
  cli: {
    usage: 'namespace keys <namespace>',
    examples: ['waystation namespace keys state --prefix user/ --all'],
    columns: key_columns,
  },
  auth: ['admin'],
  params: { namespace },
  query: KeyQuery,
  replies: { 200: { body: KeyPage } },
  errors: ['NAMESPACE_FORBIDDEN'],
  handle: (context, { params, query }) => keysListed(context, params.namespace, query),
})

export const getNamespaceKey = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace/keys/:key',
  tag,
  summary: 'Read a value and its version in any namespace',
  sdk: { name: 'namespaces.get' },
  cli: {
    usage: 'namespace get <namespace> <key>',
    about: 'Print a value: the exact JSON text that was put',
    examples: [
      'waystation namespace get state last-run',
      'waystation namespace get state last-run --json   # with its version and times',
    ],
    options: { if_version: false },
  },
  auth: ['admin'],
  params: { namespace, key },
  headers: read_headers,
  replies: { 200: { body: Entry, headers: version_header }, 304: { body: null } },
  errors: ['KEY_NOT_FOUND', 'VERSION_MISMATCH', 'NAMESPACE_FORBIDDEN'],
  handle: (context, { params, header }) => entryRead(context, params, header),
})
