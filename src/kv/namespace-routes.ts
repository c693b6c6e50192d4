// /v1/namespaces: which there are, and keys and values of all agents for the admin.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { pageRequest, pageUpTo } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Nullable, Page, PageQuery, Shape } from '../contract/schemas.ts'
import * as namespace_service from './namespace-service.ts'
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

const Namespace = Shape('Namespace', 'A namespace of keys and its settings.', {
  namespace: Type.String(),
  agent_id: Nullable(
    Type.String({ description: 'The agent whose private namespace it is; null for a shared one.' }),
  ),
  events: Type.Boolean({ description: 'True when each change of a key in it leaves an event.' }),
})

export const listNamespaces = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces',
  tag,
  summary: 'List the namespaces that hold a key or leave events, in bytewise order',
  description:
    'An agent sees those that it may read; the admin key also sees the private ones of all agents.',
  sdk: { name: 'namespaces.list' },
  cli: {
    usage: 'namespace list',
    about: 'List the namespaces that hold a key or leave events',
    group: 'Namespaces; keys and values of all agents with the admin key',
    examples: ['waystation namespace list --all'],
    columns: ['namespace', 'agent_id', 'events'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object(PageQuery),
  replies: {
    200: { body: Page(Namespace) },
  },
  errors: [],
  async handle(context, { query }) {
    const { db, caller, now } = context
    const { rows_max, after } = pageRequest(context, query)
    const [namespace = '', key = null] = (after ?? []) as [string?, string?]
    const place = { namespace, key: after ? key : '' }
    const { items, next } = await namespace_service.list(db, caller, place, now, rows_max - 1)
    return pageUpTo(context, items, next && [next.namespace, ...(next.key === null ? [] : [next.key])])
  },
})

export const getNamespace = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace',
  tag,
  summary: 'Read the settings of a namespace',
  description: 'Works even for one that holds no key. An agent may ask about those that it may read.',
  sdk: { name: 'namespaces.settings' },
  cli: { usage: 'namespace show <namespace>', examples: ['waystation namespace show state'] },
  auth: ['agent', 'admin'],
  params: { namespace },
  replies: { 200: { body: Namespace } },
  errors: ['NAMESPACE_FORBIDDEN'],
  handle: ({ db, caller }, { params }) => namespace_service.read(db, caller, params.namespace),
})

export const updateNamespace = route({
  group: v1,
  method: 'PUT',
  path: '/v1/namespaces/:namespace',
  tag,
  summary: 'Turn events for the changes of keys in a namespace on or off',
  description:
    'Answers once every node applies it: after a second where nodes share a PostgreSQL. At most 100 namespaces of a tenant leave events.',
  sdk: {
    name: 'namespaces.update',
    retry: { safe: true, why: 'the same settings are set again' },
  },
  cli: {
    usage: 'namespace update <namespace>',
    about: 'Turn events for the changes of keys in a namespace on or off',
    examples: ['waystation namespace update state --events', 'waystation namespace update state --no-events'],
    options: { events: ['--events', 'changes of its keys leave events'] },
    or: { events: ['--no-events', 'changes leave no events', false] },
  },
  auth: ['admin'],
  emits: ['kv.events_enabled', 'kv.events_disabled'],
  params: { namespace },
  body: Type.Object({
    events: Type.Boolean({ description: 'True: each put, delete and expiry of a key leaves an event.' }),
  }),
  replies: { 200: { body: Namespace } },
  errors: ['NAMESPACE_FORBIDDEN', 'TOO_MANY_NAMESPACES', 'QUOTA_EXCEEDED'],
  handle: ({ db, caller, dependencies }, { params, body }) =>
    namespace_service.setEvents(db, caller, dependencies, params.namespace, body.events),
})

export const listNamespaceKeys = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace/keys',
  tag,
  summary: 'List the keys of any namespace, in bytewise order',
  description: 'Needs the admin key, and reads the private namespaces of agents as well. Without values.',
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
  description: 'Needs the admin key, and reads the private namespaces of agents as well.',
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
