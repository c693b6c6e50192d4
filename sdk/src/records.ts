// client.tenants, agents, approvalKeys, audit and schedules: a method per operation.

import { listOf, split } from './options.ts'
import type { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Transport } from './transport.ts'
import type {
  Agent,
  ApprovalKey,
  Attempt,
  AuditEntry,
  CreatedTenant,
  DeletedTenant,
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

  get(tenant_id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.transport.call('getTenant', { params: { tenant_id } }, options)
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
  /** For one checkpoint with `checkpoint_id`, else for all. The key is shown in this answer only. */
  create(given: Body<'createApprovalKey'> & CreateOptions = {}): Promise<ApprovalKey> {
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
