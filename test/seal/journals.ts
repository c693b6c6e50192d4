// Journals of tenants, made by the service's own code: events, a tree, checkpoints and bundles.

import { Type } from 'typebox'
import type { Dependencies } from '../../src/contract/dependencies.ts'
import { declareEvents } from '../../src/contract/event.ts'
import { type Db, unnamedAcrossTenants } from '../../src/db/db.ts'
import { follows } from '../../src/features.ts'
import * as journal from '../../src/journal/service.ts'
import { type Asked, bundle } from '../../src/seal/bundle-service.ts'
import { checkpoint } from '../../src/seal/checkpoint-service.ts'
import { secretsUnder } from '../../src/secrets/service.ts'
import { unhurried } from '../support/patience.ts'

type Random = (below: number) => number

export const types = Object.values(
  declareEvents({
    'test.begun': {
      about: 'Something began.',
      subject: 'thing',
      data: { count: Type.Integer(), note: Type.String() },
      waiting: 1,
    },
    'test.ended': {
      about: 'Something ended.',
      subject: 'thing',
      data: { count: Type.Integer(), note: Type.String() },
      waiting: -1,
    },
  }),
)

/** Ids of workflows and texts that are hard on quoting, sorting and UTF-8. */
export const workflows = ['order-17', 'naïve "quoted" \\ path/ü', '{"a":1}\u007f \u{1f600}\ufb33\u2028']
const notes = ['', 'plain', '"\\/\b\f\n\r\t\u0001\u001f', 'é\u{10ffff}', '</script>']

const NEW_TENANT = unnamedAcrossTenants(
  'test.new_tenant',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, :tenant_id, 'o@example.com', 'free', 'active', 's', 1)`,
)

/** The dependencies of the service's functions besides the database. */
export function dependenciesFor(db: Db): Dependencies {
  const dependencies = {
    keys: { secrets: secretsUnder('a secret key of the tests') },
    journal: { number: (tenant_id: string) => journal.number(db, dependencies, follows, tenant_id) },
  } as unknown as Dependencies
  return dependencies
}

export class Journal {
  readonly dependencies: Dependencies

  constructor(
    readonly db: Db,
    readonly tenant_id: string,
    readonly random: Random,
  ) {
    this.dependencies = dependenciesFor(db)
  }

  static async create(db: Db, random: Random): Promise<Journal> {
    const tenant_id = `ten_${crypto.randomUUID().replaceAll('-', '')}`
    await db.write((tx) => tx.run(NEW_TENANT, { tenant_id }))
    return new Journal(db, tenant_id, random)
  }

  /** Events that are committed, numbered and sealed. */
  async grow(count: number): Promise<void> {
    await this.leave(count)
    await this.checkpoint()
  }

  /** Events that are committed. */
  async leave(count: number): Promise<void> {
    const { db, random, tenant_id } = this
    const drawn = Array.from({ length: count }, () => ({
      type: types[random(types.length)]!,
      workflow_id: random(8) === 0 ? null : workflows[random(workflows.length)]!,
      private_to: random(12) === 0 ? 'agent-1' : null,
      subject_id: `thing-${random(9)}`,
      count: random(2) === 0 ? random(100) : Number.MAX_SAFE_INTEGER - random(5),
      note: notes[random(notes.length)]!,
    }))
    await db.write(unhurried, async (tx) => {
      for (const { type, count, note, ...event } of drawn) {
        const cause = { actor: 'admin', agent_id: null, request_id: 'req_1', workflow_id: null }
        await journal.emit(tx, type, { tenant_id, cause, ...event, data: { count, note } })
      }
    })
  }

  async checkpoint(workflow_id: string | null = null): Promise<string> {
    return (await checkpoint(this.db, this.dependencies, this.tenant_id, workflow_id)).note
  }

  /** The answer of the route, or of its refusal. */
  async bundle(
    workflow_id: string | null,
    { from = null, after = 0, events_max }: Partial<Omit<Asked, 'workflow_id'>> = {},
  ): Promise<string> {
    let text = ''
    try {
      for await (const piece of await bundle(this.db, this.dependencies, this.tenant_id, {
        ...{ workflow_id, from, after, events_max },
      }))
        text += piece
      return text
    } catch (error) {
      return `${text}\n${JSON.stringify({ error: String(error) })}`
    }
  }
}

/** Checkpoints of a journal of `size` events that a reader has kept. */
export interface Kept {
  size: number
  journal: string
  workflows: ReadonlyMap<string, string>
}

export async function kept(of: Journal, size: number): Promise<Kept> {
  const notes = new Map<string, string>()
  for (const workflow_id of workflows) notes.set(workflow_id, await of.checkpoint(workflow_id))
  return { size, journal: await of.checkpoint(), workflows: notes }
}

/** A check as both verifiers take it. */
export interface Check {
  bundle: string
  checkpoint: string | undefined
  after: number
  key?: string
  part?: boolean
}

/** The bundle of the journal, and that of each workflow. */
export async function* checksOf(of: Journal, { size, ...notes }: Kept): AsyncGenerator<Check> {
  yield { bundle: await of.bundle(null), checkpoint: notes.journal, after: 0 }
  for (const workflow_id of workflows) {
    const bundle = await of.bundle(workflow_id, { from: size })
    yield { bundle, checkpoint: notes.workflows.get(workflow_id), after: 0 }
  }
}
