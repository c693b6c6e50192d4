// Statements that remove the journal of a tenant that is being purged.

import { purging, purgingAll } from '../db/purge.ts'
import { unnumbered } from './store.ts'

const events = { table: 'events', key: 'position' }

export const purge = [
  purging('journal.purge', {
    ...{ ...events, index: 'events_seq', order: 'tenant_id, seq' },
    where: 'tenant_id = :tenant_id and seq is not null',
  }),
  purging('journal.purge_unnumbered', {
    ...{ ...events, index: 'events_unnumbered', order: 'tenant_id, position', where: unnumbered },
  }),
  purging('journal.purge_workflows', { table: 'workflows', key: 'tenant_id, workflow_id' }),
  purgingAll('journal.purge_head', 'event_heads'),
]
