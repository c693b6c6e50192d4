// Events of the journal, as pages read them.

import type { JournalEvent as Listed } from '../../sdk/src/types.ts'

export type { Workflow } from '../../sdk/src/types.ts'

export interface JournalEvent extends Omit<Listed, 'data'> {
  /** Flat: what the type says. */
  data: Record<string, string | number | boolean | null>
}
