// Every attack, in the order in which they run: what a client can do to memory and time first, then what it can store,
// then what it can break.

import { bytesAtRest } from './bytes-at-rest.ts'
import { clearTokens } from './clear-tokens.ts'
import { clockBack } from './clock-back.ts'
import { damagedFiles } from './damaged-files.ts'
import { descriptorLimit } from './descriptors.ts'
import { driveBy } from './drive-by.ts'
import { eventStreams } from './event-streams.ts'
import { expiringKeys } from './expiring-keys.ts'
import { frozenDatabase } from './frozen-database.ts'
import { fullDisk } from './full-disk.ts'
import { heavyReads } from './heavy-reads.ts'
import { heavyWrites } from './heavy-writes.ts'
import { heldBodies } from './held-bodies.ts'
import { idleConnections } from './idle-connections.ts'
import { largeCalls } from './large-calls.ts'
import type { Attack } from './lib/lab.ts'
import { manyAddresses } from './many-addresses.ts'
import { nestedIds } from './nested-ids.ts'
import { pipelinedFloods } from './pipelined-floods.ts'
import { poolHog } from './pool-hog.ts'
import { protocol } from './protocol.ts'
import { resets } from './resets.ts'
import { secondService } from './second-service.ts'
import { silentDns } from './silent-dns.ts'
import { silentReceivers } from './silent-receivers.ts'
import { unboundedScans } from './unbounded-scans.ts'
import { unread } from './unread.ts'

export const attacks: readonly Attack[] = [
  secondService,
  resets,
  heldBodies,
  unread,
  idleConnections,
  pipelinedFloods,
  eventStreams,
  expiringKeys,
  nestedIds,
  unboundedScans,
  heavyReads,
  heavyWrites,
  largeCalls,
  poolHog,
  silentDns,
  silentReceivers,
  bytesAtRest,
  fullDisk,
  damagedFiles,
  frozenDatabase,
  manyAddresses,
  driveBy,
  protocol,
  descriptorLimit,
  clockBack,
  clearTokens,
]
