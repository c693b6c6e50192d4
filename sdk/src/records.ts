// client.tenants, agents, approvalKeys, approvals, namespaces, audit and schedules: a method per operation.

import { memberText } from './json.ts'
import type { Entry } from './kv.ts'
import { listOf, split } from './options.ts'
import type { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Transport } from './transport.ts'
import type {
  Agent,
  Approval,
  ApprovalKey,
  Attempt,
  AuditEntry,
  CreatedApprovalKey,
  CreatedTenant,
  DeletedTenant,
  ListedKey,
  Namespace,
  Operations,
  RotatedAgent,
  RotatedTenant,
  Schedule,
  Tenant,
  TenantWithSecret,
} from './types.ts'

type Body<K extends keyof Operations> = Operations[K]['body']
type Query<K extends keyof Operations> = Operations[K]['query'] & CallOptions

class Noun {
  protected readonly transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.transport = transport
  }
}

export class Tenants extends Noun {
  /** Needs no key. Throws TENANT_NAME_TAKEN. The admin key and the signing secret are shown in this answer only. */
  create(body: Body<'createTenant'>, options: CreateOptions = {}): Promise<CreatedTenant> {
    return this.transport.call('createTenant', { body }, options)
  }

  /** `me` is the tenant of the key. */
  get(tenant_id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.transport.call('getTenant', { params: { tenant_id } }, options)
  }

  /** Calls and failures of each hour or day, by feature; every step of the range is there, with zeros if need be. */
  usage(tenant_id: string, given: Query<'getUsage'> = {}): Promise<Operations['getUsage']['answer']> {
    const [query, options] = split(given)
    return this.transport.call('getUsage', { params: { tenant_id }, query }, options)
  }

  /** Everything of the tenant goes after 30 days: `delete(id, { confirm: 'DELETE ALL DATA' })`. */
  delete(tenant_id: string, body: Body<'deleteTenant'>, options: CallOptions = {}): Promise<DeletedTenant> {
    return this.transport.call('deleteTenant', { params: { tenant_id }, body }, options)
  }

  restore(tenant_id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.transport.call('restoreTenant', { params: { tenant_id } }, options)
  }

  /** The old key ends at once, or after `grace_seconds`. */
  rotateKey(tenant_id: string, given: Body<'rotateTenantKey'> & CallOptions = {}): Promise<RotatedTenant> {
    const [body, options] = split(given)
    return this.transport.call('rotateTenantKey', { params: { tenant_id }, body }, options)
  }

  /** Both secrets sign for 24 hours: give both to verifyCallback. */
  rotateSigningSecret(tenant_id: string, options: CallOptions = {}): Promise<TenantWithSecret> {
    return this.transport.call('rotateSigningSecret', { params: { tenant_id } }, options)
  }
}

export class Agents extends Noun {
  /** Throws AGENT_ID_TAKEN, QUOTA_EXCEEDED. The key is shown in this answer only. */
  create(body: Body<'createAgent'>, options: CreateOptions = {}): Promise<Agent> {
    return this.transport.call('createAgent', { body }, options)
  }

  list(query: Query<'listAgents'> = {}): Pages<Agent> {
    return listOf(this.transport, 'listAgents', {}, query)
  }

  get(agent_id: string, options: CallOptions = {}): Promise<Agent> {
    return this.transport.call('getAgent', { params: { agent_id } }, options)
  }

  /** Its keys die, its records stay. */
  delete(agent_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteAgent', { params: { agent_id } }, options)
  }

  /** The old key ends at once, or after `grace_seconds`. */
  rotateKey(agent_id: string, given: Body<'rotateAgentKey'> & CallOptions = {}): Promise<RotatedAgent> {
    const [body, options] = split(given)
    return this.transport.call('rotateAgentKey', { params: { agent_id }, body }, options)
  }
}

export class ApprovalKeys extends Noun {
  /**
   * For one checkpoint with `checkpoint_id`, and then with the address of a page that decides it; else for all. The key
   * is shown in this answer only.
   */
  create(given: Body<'createApprovalKey'> & CreateOptions = {}): Promise<CreatedApprovalKey> {
    const [body, options] = split(given)
    return this.transport.call('createApprovalKey', { body }, options)
  }

  list(query: Query<'listApprovalKeys'> = {}): Pages<ApprovalKey> {
    return listOf(this.transport, 'listApprovalKeys', {}, query)
  }

  delete(approval_key_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteApprovalKey', { params: { approval_key_id } }, options)
  }
}

/** With an approval key. */
export class Approvals extends Noun {
  /** What is to be decided; with `wait`, in seconds, the answer comes once it is settled, and by then in any case. */
  get(checkpoint_id: string, given: Query<'getApproval'> = {}): Promise<Approval> {
    const [query, options] = split(given)
    const held_ms = (query.wait ?? 0) * 1_000
    return this.transport.call('getApproval', { params: { checkpoint_id }, query, held_ms }, options)
  }
}

/** With the admin key: every agent's keys and values, to be read. */
export class Namespaces extends Noun {
  /** Those that hold a key, in the order of their bytes. */
  list(query: Query<'listNamespaces'> = {}): Pages<Namespace> {
    return listOf(this.transport, 'listNamespaces', {}, query)
  }

  /** Without values. */
  keys(namespace: string, query: Query<'listNamespaceKeys'> = {}): Pages<ListedKey> {
    return listOf(this.transport, 'listNamespaceKeys', { namespace }, query)
  }

  /** Throws KEY_NOT_FOUND. */
  async get<T = unknown>(namespace: string, key: string, options: CallOptions = {}): Promise<Entry<T>> {
    const input = { params: { namespace, key } }
    return (await this.transport.call('getNamespaceKey', input, options)) as Entry<T>
  }

  /** As `get`, with the value as the exact JSON text that was put. */
  async getText(namespace: string, key: string, options: CallOptions = {}): Promise<Entry<string>> {
    const { text } = await this.transport.send('getNamespaceKey', { params: { namespace, key } }, options)
    return { ...(JSON.parse(text) as Entry), value: memberText(text, 'value')! }
  }
}

export class Audit extends Noun {
  append(body: Body<'appendEntry'>, options: CreateOptions = {}): Promise<AuditEntry> {
    return this.transport.call('appendEntry', { body }, options)
  }

  /** Newest first. */
  list(query: Query<'listEntries'> = {}): Pages<AuditEntry> {
    return listOf(this.transport, 'listEntries', {}, query)
  }

  get(id: string, options: CallOptions = {}): Promise<AuditEntry> {
    return this.transport.call('getEntry', { params: { id } }, options)
  }
}

export class Schedules extends Noun {
  create(body: Body<'createSchedule'>, options: CreateOptions = {}): Promise<Schedule> {
    return this.transport.call('createSchedule', { body }, options)
  }

  list(query: Query<'listSchedules'> = {}): Pages<Schedule> {
    return listOf(this.transport, 'listSchedules', {}, query)
  }

  get(id: string, options: CallOptions = {}): Promise<Schedule> {
    return this.transport.call('getSchedule', { params: { id } }, options)
  }

  /** Throws INVALID_STATE when it is not pending. */
  update(id: string, changes: Body<'updateSchedule'>, options: CallOptions = {}): Promise<Schedule> {
    return this.transport.call('updateSchedule', { params: { id }, body: changes }, options)
  }

  cancel(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('cancelSchedule', { params: { id } }, options)
  }

  /** What was tried to call it, latest first. */
  attempts(id: string, query: Query<'listScheduleAttempts'> = {}): Pages<Attempt> {
    return listOf(this.transport, 'listScheduleAttempts', { id }, query)
  }
}
