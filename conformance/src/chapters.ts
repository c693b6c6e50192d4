// All chapters, in the order of the report.

import { agents } from './chapters/agents.ts'
import { approval_keys } from './chapters/approval-keys.ts'
import { attempts } from './chapters/attempts.ts'
import { audit } from './chapters/audit.ts'
import { bodies } from './chapters/bodies.ts'
import { callbacks } from './chapters/callbacks.ts'
import { checkpoints } from './chapters/checkpoints.ts'
import { core } from './chapters/core.ts'
import { core_work } from './chapters/core-work.ts'
import { credentials } from './chapters/credentials.ts'
import { dlq } from './chapters/dlq.ts'
import { edge } from './chapters/edge.ts'
import { idempotency } from './chapters/idempotency.ts'
import { inbox } from './chapters/inbox.ts'
import { isolation } from './chapters/isolation.ts'
import { journal } from './chapters/journal.ts'
import { kv } from './chapters/kv.ts'
import { lists } from './chapters/lists.ts'
import { paths } from './chapters/paths.ts'
import { quotas } from './chapters/quotas.ts'
import { rate_limit } from './chapters/rate-limit.ts'
import { schedules } from './chapters/schedules.ts'
import { tenants } from './chapters/tenants.ts'
import { tick } from './chapters/tick.ts'
import type { Chapter } from './check.ts'

export const chapters: readonly Chapter[] = [
  core,
  core_work,
  edge,
  credentials,
  isolation,
  paths,
  bodies,
  lists,
  idempotency,
  tenants,
  agents,
  approval_keys,
  kv,
  audit,
  dlq,
  schedules,
  attempts,
  checkpoints,
  callbacks,
  tick,
  quotas,
  inbox,
  rate_limit,
  journal,
]
