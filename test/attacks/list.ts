// Every attack, in the order in which they run.

import type { Attack } from './lib/lab.ts'
import { resets } from './resets.ts'

export const attacks: readonly Attack[] = [resets]
