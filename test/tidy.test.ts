// The repository reads its own source: what may import what, and where the clock, the environment, the network and
// SQL are touched. Every exception has its reason, and is itself a failure once it is no longer needed.

import { describe, expect, test } from 'bun:test'
import { basename, dirname, extname, join, normalize } from 'node:path'
import '../src/app.ts'
import type { Feature } from '../src/contract/feature.ts'
import { features } from '../src/features.ts'
import { quickFiles } from './support/quick.ts'
import { code, codeOf, files, placeOf, source, textOf, textsIn, wordsOf } from './support/source.ts'

/** The nouns of the API, and what they use, each a folder with a feature.ts. */
const nouns = features.filter(({ name, routes }) => routes && name !== 'maintenance').map(({ name }) => name)
const rooms = features.filter(({ routes }) => !routes).map(({ name }) => name)

describe('imports', () => {
  /** Inner first: a file imports from its own folder and from the layers before its own. */
  const layers: string[][] = [
    ['base', 'version.ts'],
    ['db', 'callbacks', 'heap.ts'],
    ['contract'],
    rooms,
    nouns,
    ['maintenance'],
    ['http'],
    ['features.ts', 'settings.ts'],
    ['site', 'config.ts'],
    ['metrics', 'traces'],
    ['backup'],
    ['app'],
    ['app.ts'],
    ['workers'],
    ['admin'],
    ['serve.ts', 'admin.ts'],
    ['main.ts'],
  ]
  const layerOf = (file: string) => layers.findIndex((layer) => layer.includes(placeOf(file)))
  const mayMeet = (from: string, to: string) =>
    [nouns, rooms, ['site', 'config.ts']].some((layer) => layer.includes(from) && layer.includes(to))

  test('every file of src has its layer, and no layer names what is gone', () => {
    expect(source.filter((file) => layerOf(file) === -1)).toEqual([])
    expect([...new Set(source.map(placeOf))].toSorted()).toEqual(layers.flat().toSorted())
  })

  test('point inward', () => {
    const outward = imports().filter(({ from, to }) => {
      const same_layer_other_place = layerOf(from) === layerOf(to) && placeOf(from) !== placeOf(to)
      return layerOf(to) > layerOf(from) || (same_layer_other_place && !mayMeet(placeOf(from), placeOf(to)))
    })
    expect(outward.map(shown)).toEqual([])
  })

  test("take another feature's service.ts and nothing else of it", () => {
    const reasons: Record<string, string> = {
      'src/app.ts -> src/journal/keeper.ts': 'the composition runs it',
      'src/app/background.ts -> src/journal/keeper.ts': 'the composition runs it',
      'src/app/parts.ts -> src/credentials/cache.ts': 'the composition makes the cache',
      'src/config.ts -> src/quotas/plans.ts': 'the configuration reads the table of plans',
      'src/features.ts -> src/quotas/plans.ts': 'the defaults of plans are those of the features',
      ...Object.fromEntries(
        imports()
          .filter(({ from, to }) => from === 'src/features.ts' && basename(to) === 'feature.ts')
          .map((found) => [shown(found), 'the list is there for this']),
      ),
    }
    const inner = imports().filter(({ from, to }) => {
      const is_feature = [...nouns, ...rooms].includes(placeOf(to)) && placeOf(to) !== 'jobs'
      return is_feature && placeOf(to) !== placeOf(from) && basename(to) !== 'service.ts'
    })
    expect(inner.map(shown).toSorted()).toEqual(
      Object.keys(reasons)
        .filter((found) => !found.endsWith('src/jobs/feature.ts') && !found.includes('-> src/contract/'))
        .filter((found) => !found.includes('-> src/maintenance/'))
        .toSorted(),
    )
  })

  test('between features go one way', () => {
    const folders = [...nouns, ...rooms]
    const edges = imports().filter(
      ({ from, to }) => folders.includes(placeOf(from)) && folders.includes(placeOf(to)),
    )
    const reaches = (from: string, seen: string[] = []): string[] =>
      seen.includes(from)
        ? seen
        : edges
            .filter((edge) => placeOf(edge.from) === from && placeOf(edge.to) !== from)
            .reduce((known, edge) => reaches(placeOf(edge.to), known), [...seen, from])
    const circles = folders.filter((feature) =>
      edges.some(
        (edge) =>
          placeOf(edge.to) === feature &&
          placeOf(edge.from) !== feature &&
          reaches(feature).includes(placeOf(edge.from)),
      ),
    )
    expect(circles).toEqual([])
  })

  test("leave a noun's own file without database and HTTP", () => {
    const reasons: Record<string, string> = {
      'src/dlq/claims.ts': 'the verbs on a lock',
      'src/dlq/redrive.ts': 'the verb that sends again',
      'src/inbox/messages.ts': 'a verb on messages',
      'src/inbox/receive.ts': 'the arrival of a message',
      'src/inbox/room.ts': 'removes messages for one that arrives',
      'src/inbox/replay.ts': 'the verb that forwards again',
      'src/jobs/fairness.ts': 'reads the due jobs among which it chooses',
      'src/jobs/kind.ts': 'a kind settles in the transaction that it is given',
      'src/jobs/outcomes.ts': 'writes how jobs ended',
      'src/jobs/round-robin.ts': 'reads which tenants have due jobs',
      'src/jobs/stale-leases.ts': 'ends leases by real time',
      'src/jobs/timer.ts': 'looks when the next job falls due',
      'src/jobs/worker.ts': 'leases due jobs',
      'src/events/follower.ts': 'reads on and waits',
      'src/events/pages.ts': 'reads pages',
      'src/journal/removal.ts': 'removes old events beside requests',
      'src/jobs/worker-options.ts': 'the surroundings of the worker',
      'src/journal/retention.ts': 'removes old events',
      'src/kv/lists.ts': 'the verbs that list',
      'src/schedules/repeat.ts': 'the verb that sends again',
      'src/tenants/pause.ts': 'the steps that pause jobs',
      'src/tenants/signal.ts': 'tells other nodes',
      'src/tenants/signing.ts': 'reads the signing secrets',
      'src/tenants/view.ts': 'the verb that reads',
    }
    const pure = source.filter((file) => {
      return (
        [...nouns, ...rooms].includes(placeOf(file)) &&
        !/^(feature|jobs|(\w+-)?(service|store|routes|sweep))\.ts$/.test(basename(file))
      )
    })
    expect(pure.length).toBeGreaterThan(3)
    const impure = imports().filter(
      ({ from, to }) => pure.includes(from) && ['db', 'http'].includes(placeOf(to)),
    )
    expect([...new Set(impure.map(({ from }) => from))].toSorted()).toEqual(Object.keys(reasons).toSorted())
  })
})

describe('what all routes share', () => {
  const shared = code.filter((file) => {
    const is_shared =
      /^src\/(contract|http|idempotency|usage)\/|^scripts\/(openapi|errors|sdk-types)\.ts$|^mcp\//.test(file)
    return is_shared && !file.endsWith('.test.ts') && !isRoutes(file)
  })

  test('decides nothing by a path: none of the API stands in its code', () => {
    expect(shared.length).toBeGreaterThan(30)
    expect(shared.filter((file) => /['"`]\/(v1|api|hook)\b/.test(codeOf(file)))).toEqual([])
  })
})

describe('a feature is named', () => {
  const listed = ['src/features.ts']
  const others = source.filter((file) => !nouns.includes(placeOf(file)) && !listed.includes(file))

  test('by imports of its own folder, of other features and of the list alone', () => {
    const reasons: Record<string, string> = {
      'src/admin/database.ts -> src/seal/service.ts': "the operator's command looks through journals",
      'src/admin/database.ts -> src/tenants/service.ts': "the operator's command counts tenants",
      'src/admin/find.ts -> src/tenants/service.ts': "the operator's command finds a tenant by its name",
      'src/admin/keys.ts -> src/seal/service.ts': "the operator's command rotates the key of the seal",
      'src/admin/keys.ts -> src/tenants/service.ts': "the operator's command resets keys",
      'src/admin/secret-key.ts -> src/tenants/service.ts':
        "the operator's command seals again for each tenant",
      'src/admin/tenants.ts -> src/tenants/service.ts': "the operator's command lists and changes tenants",
      'src/backup/mark.ts -> src/seal/service.ts': 'a restore begins an epoch of the journals',
      'src/backup/mark.ts -> src/tenants/service.ts': 'a restore leaves its mark for each tenant',
      'src/backup/release.ts -> src/approval-keys/service.ts': 'a release may end all keys',
      'src/backup/release.ts -> src/tenants/service.ts': 'a release may end the keys of each tenant',
      'src/app/background.ts -> src/tenants/service.ts': 'jobs are paused and resumed with their tenant',
      'src/admin/run.ts -> src/clock/service.ts': "the operator's commands take the time of the service",
      'src/app.ts -> src/clock/service.ts': 'the composition reads the test clock',
      'src/app/start.ts -> src/clock/service.ts':
        'a start refuses a clock that the database was not made under',
      'src/app/test-clock.ts -> src/clock/service.ts': 'the composition connects it with due work',
      'src/maintenance/advance.ts -> src/clock/service.ts': 'all that falls due is done on the way',
      'src/app/parts.ts -> src/usage/service.ts': 'the composition counts calls',
      'src/app/start.ts -> src/tenants/service.ts': 'a plan that tenants are on must be in the table',
    }
    const found = imports().filter(({ from, to }) => others.includes(from) && nouns.includes(placeOf(to)))
    expect(found.map(shown).toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  /** The names of one feature: first parts of its paths, its quotas and limits, its tables, its names elsewhere. */
  function namesOf(feature: Feature): string[] {
    const paths = (feature.routes ?? []).map(({ route }) => route.path.split('/').slice(0, 3).join('/'))
    const tables = (feature.migrations ?? []).flatMap(({ text }) =>
      [...text.matchAll(/create table (\w+)/g)].map(([, table]) => table!),
    )
    const limits = [...(feature.quotas ?? []), ...(feature.plan_limits ?? [])].map(({ name }) => name)
    const counters = [feature.counters ?? {}, feature.sweep?.counters ?? {}].flatMap((counters) =>
      Object.entries(counters).flatMap(([group, names]) => names.map((name) => `${group}.${name}`)),
    )
    return [...paths, ...tables, ...limits, ...counters, ...(feature.usage ? [feature.usage] : [])]
  }

  /** A plain word counts where it is all of a text, or a table; others wherever they stand. */
  function isNamed(name: string, texts: readonly string[]): boolean {
    const is_word = /^[a-z]+$/.test(name)
    const pattern = is_word
      ? new RegExp(`^${name}$|\\b(from|join|into|update|references) ${name}\\b`)
      : new RegExp(`(?<![\\w/-])${name}(?![\\w-])`)
    return texts.some((text) => pattern.test(text))
  }

  test('in texts of its own folder and of other features alone', () => {
    const reasons: Record<string, string> = {
      'src/admin/tenants.ts tenants': 'the command of that name',
      'src/base/error-rows.ts /readyz': 'what to do next names the probe',
      'src/credentials/feature.ts tenants': 'keys point to their tenant',
      'src/credentials/list-store.ts approval_keys': 'the list of keys says when each was used',
      'src/credentials/store.ts agents': 'the look-up of a key answers what its agent may do',
      'src/credentials/store.ts approval_keys': 'the look-up of a key answers what it is bound to',
      'src/credentials/store.ts tenants': 'the look-up of a key answers its tenant',
      'src/db/distributed.ts tenants': 'the shards of all other tables lie beside those of this one',
      'src/db/postgres-batches.ts effects': 'what is done in memory after a commit',
      'src/db/postgres-session.ts tenants':
        'without this table no request can be answered: a probe of readiness looks for it',
      'src/db/postgres.ts /readyz': 'a limit says whose answer it bounds',
      'src/journal/page-store.ts events': 'the table of that name is its own',
      'src/journal/purge-store.ts events': 'the table of that name is its own',
      'src/journal/purge-store.ts workflows': 'the sums go with the events of the tenant',
      'src/journal/store.ts workflows': 'numbering keeps the sums that the feature of this name shows',
      'src/journal/retention-store.ts workflows': 'the sums go with the last event of a workflow',
      'src/jobs/search-store.ts tenants': 'due jobs of deleted and frozen tenants are passed',
      'src/jobs/store.ts tenants': 'the jobs of tenants that wait for deletion are left out',
      'src/journal/retention-store.ts events': 'the table of that name is its own',
      'src/journal/retention-store.ts tenants': 'the plan says how long events live',
      'src/journal/store.ts events': 'the table of that name is its own',
      'src/maintenance/advance.ts /v1/clock': 'a limit says whose answer it bounds',
      'src/maintenance/advance.ts /v1/events': 'a limit says where the rest is',
      'src/serve.ts /v1/clock': 'the banner says how a test clock is moved',
      'src/settings.ts /v1/clock': 'the help says how a test clock is moved',
      'src/site/console.ts test_clock': 'the shell of the console says that there is one',
      'src/serve.ts /v1/tenants': 'the banner shows a first call',
      'src/quotas/feature.ts tenants': 'counters point to their tenant',
      'src/site/mail.ts /v1/mail': 'the pages of the links in emails call it',
      'src/site/reference-page.ts /openapi.json': 'the reference links to what it shows',
    }
    const names = new Set(
      features.filter(({ name }) => nouns.includes(name)).flatMap((feature) => namesOf(feature)),
    )
    expect(names.size).toBeGreaterThan(40)
    const found = others.flatMap((file) => {
      const code = codeOf(file).replace(/^(import|\} from) .*$/gm, '')
      return [...names].flatMap((name) => (isNamed(name, textsIn(code)) ? [`${file} ${name}`] : []))
    })
    expect(found.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })
})

describe('mcp/', () => {
  const own = code.filter((file) => file.startsWith('mcp/'))
  const edges = code.flatMap((from) =>
    [...textOf(from).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) => ({
      from,
      to: normalize(join(dirname(from), path!)),
    })),
  )

  test('knows the service by openapi.json alone', () => {
    const outside = edges.filter(({ from, to }) => own.includes(from) && !own.includes(to))
    expect(outside.map(shown)).toEqual(['mcp/server.ts -> openapi.json'])
  })

  test('is used by its page alone, which loads it when it is first asked for', () => {
    const users = edges.filter(({ from, to }) => from.startsWith('src/') && to.startsWith('mcp/'))
    expect(users.map(shown)).toEqual(['src/site/mcp.ts -> mcp/http.ts'])
    expect(codeOf('src/site/mcp.ts')).toContain("await import('../../mcp/http.ts')")
  })

  test('touches the process, the network and timers over stdio only', () => {
    const effects = /\bprocess\.|\bconsole\.|\bfetch\(|\bsetTimeout\b|\bDate\b|\bAbortSignal\.timeout\b/
    expect(own.filter((file) => effects.test(codeOf(file))).toSorted()).toEqual(['mcp/stdio.ts'])
  })
})

describe('conformance/', () => {
  const own = code.filter((file) => file.startsWith('conformance/'))

  test('knows the service by its URL alone: it imports its own files and those of Node', () => {
    const outside = own.flatMap((from) =>
      [...textOf(from).matchAll(/^(?:import|\}).* from '([^']+)'$/gm)].flatMap(([, to]) => {
        const is_own = to!.startsWith('.') && own.includes(normalize(join(dirname(from), to!)))
        return is_own || to!.startsWith('node:') ? [] : [`${from} -> ${to}`]
      }),
    )
    expect(own.filter((file) => /\b(import\(|require\()/.test(codeOf(file)))).toEqual([])
    expect(own.length).toBeGreaterThan(20)
    expect(outside).toEqual([])
  })
})

describe('effects have their places', () => {
  const places: [what: string, pattern: RegExp, allowed: Record<string, string>][] = [
    [
      'the time',
      /\bDate\.now\b|\bnew Date\(|\bperformance\.now\b|\bBun\.nanoseconds\b|\bprocess\.hrtime\b/,
      { 'src/base/clock.ts': 'the one clock' },
    ],
    [
      'timers',
      /\bsetTimeout\b|\bsetInterval\b|\bsetImmediate\b|\bqueueMicrotask\b|\bnextTick\b|\bBun\.sleep|\bsleep\(/,
      {
        'src/app/stop.ts': 'the end of the patience of a drain',
        'src/credentials/cache.ts': 'a setting holds once no node remembers how it was',
        'src/db/db.ts': 'an effect after commit that throws must not take other callers along',
        'src/db/recount.ts': 'nodes write what they have counted between two looks',
        'src/db/schema-lock.ts': 'others have a table between two tries to change it',
        'src/db/sqlite.ts': 'one commit per turn of the event loop',
        'src/db/sqlite-connection.ts': 'the reads of one turn of the event loop share a state',
        'src/db/sqlite-batch.ts': 'a lock that another process holds is asked for again',
        'src/db/sqlite-flush.ts': 'an error that is a bug ends the process',
        'src/db/sqlite-snapshots.ts': 'commits wait for reads, for a time',
        'src/http/delivery.ts': 'an answer waits for room in memory',
        'src/http/body-stream.ts': 'a sender has 30 seconds, whatever the clock says',
        'src/base/byte-pace.ts': 'large bodies are taken on in turns of the event loop',
        'src/base/loop-delay.ts': 'how much later than asked a timer fires',
        'src/base/repeat.ts': 'what a node has counted is written once a second',
        'src/base/event-loop.ts': 'how long a turn of the event loop takes',
        'src/base/next-turn.ts': 'pieces of work in different turns of the event loop',
        'src/base/heavy-read.ts': 'how long a slow client keeps the permit of its tenant',
        'src/base/heavy-reads.ts': 'how long a heavy read waits for a permit',
        'src/base/notifier.ts': 'the end of the patience of a waiting request',
        'src/base/output.ts': 'a reader makes room in the pipe',
        'src/base/in-time.ts': 'what does not come in time is given up',
        'src/base/sleep.ts': 'a pause on the timers of the machine',
        'src/base/signals.ts': 'the pace of what is told to other nodes',
        'src/backup/release.ts': 'nodes remember keys for a second',
        'src/backup/timer.ts': 'the time between two backups',
        'src/callbacks/attempt.ts': 'an attempt has 10 seconds, whatever the clock says',
        'src/callbacks/dial.ts': 'a silent address leaves time for the next',
        'src/callbacks/lookup-queue.ts': 'an attempt waits 5 seconds for a permit',
        'src/callbacks/mail.ts': 'an SMTP server has 10 seconds, whatever the clock says',
        'src/callbacks/resolver.ts': 'a look-up ends, whatever the DNS server does',
        'src/db/postgres.ts': 'a caller has so much time, whatever the clock says',
        'src/db/postgres-read-only.ts': 'looks for a server that takes writes',
        'src/db/postgres-silence.ts': 'a database that is silent is given up',
        'src/db/postgres-outage.ts': 'a server that is away is tried after a pause',
        'src/db/postgres-listen.ts': 'a connection that hears nothing is given up',
        'src/db/postgres-batch.ts': 'a connection that is silent is given up',
        'src/db/postgres-batches.ts': 'what arrives in one turn of the event loop shares a batch',
        'src/db/postgres-clock.ts': 'asks the time of the database now and then',
        'src/maintenance/sweep.ts': 'the pace of the sweep',
        'src/traces/otel.ts': 'a collector that is away does not hold a stop up',
        'src/workers/figures.ts': 'a worker that does not answer is not waited for',
        'src/workers/supervisor.ts': 'restarts wait, and a stop ends',
        'src/workers/worker.ts': 'a supervisor that does not answer is not waited for',
        'src/jobs/coalesce.ts': 'how long a result waits for others',
        'src/events/service.ts': 'a wait checks its key now and then',
        'src/events/follower.ts': 'the end of a wait for events',
        'src/jobs/worker.ts': 'a tick looks whether other nodes have ended',
        'src/jobs/outcomes.ts': 'an outcome that is refused is written again a little later',
        'src/jobs/timer.ts': 'the pace of due jobs',
      },
    ],
    ['chance that can be guessed', /\bMath\.random\b/, {}],
    [
      'chance and ciphers',
      /\bgetRandomValues\b|\brandomUUID\b|\brandomBytes\b|node:crypto|\bCryptoHasher\b|\bSHA256\b/,
      {
        'src/backup/file.ts': 'checksums of files',
        'src/base/ids.ts': 'the random part of ids',
        'src/base/keys.ts': 'keys and their hashes',
        'src/base/seal.ts': 'every cipher and derivation',
        'src/callbacks/sign.ts': 'signatures of callbacks',
        'src/idempotency/service.ts': 'fingerprints of bodies and of Idempotency-Keys',
        'src/db/space.ts': 'bytes that no file system stores in fewer',
        'src/seal/merkle.ts': 'the hashes of the tree',
        'src/seal/note.ts': 'signatures of checkpoints',
      },
    ],
    [
      'the environment and the process',
      /\bprocess\.|\bBun\.env\b|\bimport\.meta\.env\b/,
      {
        'src/main.ts': 'the command',
        'src/serve.ts': 'the service',
        'src/heap.ts': 'starts the process once more',
        'src/app/listener.ts': 'the name of the system',
        'src/metrics/resources.ts': 'its memory, processor time and open files',
        'src/admin.ts': "the operator's command",
        'src/admin/process.ts': 'its terminal',
      },
    ],
    [
      'the console',
      /\bconsole\.(?!(tsx?|md)\b)/,
      { 'src/serve.ts': 'the banner', 'src/admin/process.ts': 'what the operator asked for' },
    ],
    [
      'outgoing connections',
      /\bfetch\(|\b(from|import\()\s*['"](node:)?(https?|http2|net|tls|dns|dgram|dns\/promises|undici)['"]|\bBun\.(connect|listen|udpSocket|dns)\b|\bWebSocket\b/,
      {
        'src/callbacks/attempt.ts': 'sends',
        'src/callbacks/dial.ts': 'connects to exactly the checked address',
        'src/callbacks/name-files.ts': 'tells an address from a name, opens nothing',
        'src/callbacks/pool.ts': 'keeps connections for reuse',
        'src/callbacks/resolver.ts': 'asks for names',
        'src/callbacks/ranges.ts': 'tells an address from a name, opens nothing',
        'src/workers/port.ts': 'holds the claim on a port, sends nothing',
      },
    ],
    [
      'the server',
      /\bBun\.serve\(/,
      {
        'src/app.ts': 'the one port',
        'src/metrics/listener.ts': 'the port of the metrics',
        'src/workers/port.ts': 'looks whether the port is free',
      },
    ],
    [
      'other processes and threads',
      /child_process|\bBun\.(spawn|spawnSync|\$)|\bWorker\(/,
      {
        'src/db/sqlite-checkpoint.ts': 'copies the log into the file, beside the event loop',
        'src/backup/timer.ts': 'a backup beside the service',
        'src/workers/processes.ts': 'the processes of one service',
      },
    ],
    ['code from text', /\beval\(|\bnew Function\(/, {}],
    [
      'files',
      /['"](node:)?fs(\/promises)?['"]|\bBun\.(file|write)\b/,
      {
        'src/app/listener.ts': 'which socket listens, by /proc',
        'src/backup/backup.ts': 'writes over no file',
        'src/backup/file.ts': 'a backup as a file',
        'src/backup/kept.ts': 'which backups there are',
        'src/backup/restore.ts': 'the database gets its name at the end',
        'src/backup/room.ts': 'old backups make room',
        'src/backup/sealed-secrets.ts': 'secrets beside a backup',
        'src/backup/timer.ts': 'which backups are kept',
        'src/backup/whole.ts': 'tells a missing database from a new one',
        'src/base/folder.ts': 'makes folders, and flushes them',
        'src/base/output.ts': 'output that must be known to be taken',
        'src/callbacks/name-files.ts': '/etc/hosts and /etc/resolv.conf',
        'src/config.ts': 'PLANS_FILE',
        'src/db/disk.ts': 'the reserve on the disk of the database',
        'src/db/space.ts': 'the room on that disk',
        'src/db/open-files.ts': 'files that are open, by where they were',
        'src/db/sqlite-check.ts': 'what kind of disk the database lies on',
        'src/db/sqlite-file.ts': 'tells a missing file from a new one',
        'src/db/sqlite-flush.ts': 'the flush of the log',
        'src/db/sqlite-lock.ts': 'the file, and its own name',
        'src/metrics/resources.ts': 'counts the files that are open',
        'src/secrets/kept-service.ts': 'generated secrets in DATA_DIR',
        'src/site/assets.ts': 'the API reference, also out of a compiled executable',
        'src/site/beside.ts': 'images of the documentation, likewise',
      },
    ],
    [
      'SQLite',
      /['"]bun:sqlite['"]/,
      {
        'src/db/sqlite.ts': 'the driver',
        'src/db/sqlite-checkpoint.ts': 'the driver',
        'src/db/sqlite-connection.ts': 'the driver',
        'src/db/sqlite-file.ts': 'copies of databases',
        'src/db/sqlite-lock.ts': 'the lock of the file is one of SQLite',
      },
    ],
    [
      'PostgreSQL',
      /\bSQL\b.*from 'bun'/,
      {
        'src/db/postgres.ts': 'the driver',
        'src/db/postgres-clock.ts': 'its time',
        'src/db/postgres-copy.ts': 'one state of all rows, for a backup',
        'src/db/postgres-listen.ts': 'what other nodes tell',
        'src/db/postgres-pool.ts': 'its connections',
        'src/db/postgres-session.ts': 'the settings of its role, before a pool can be opened',
      },
    ],
  ]

  test.each(places)('%s', (_, pattern, allowed) => {
    const found = source.filter((file) => pattern.test(codeOf(file)))
    expect(found.toSorted()).toEqual(Object.keys(allowed).toSorted())
  })
})

describe('a limit', () => {
  /** Named like a limit: `rows_max`, `tick_ms_max`, `ttl_seconds_min`. */
  const constant = /^(?:export )?const (\w+_(?:max|min)(?:_\w+)?) = (.*)$/gm
  const reasons: Record<string, string> = {
    'src/base/ids.ts seq_max': 'a number of forty bits holds no more',
    'src/ratelimit/window.ts count_max': 'a number holds no more',
    'src/ratelimit/window.ts field_integer_max': 'a header holds no more, RFC 9651',
  }

  test('is declared where it applies, so that docs/limits.md has it', () => {
    const undeclared = source.flatMap((file) =>
      [...textOf(file).matchAll(constant)]
        .filter(([, , value]) => !value!.startsWith('limit('))
        .map(([, name]) => `${file} ${name}`),
    )
    expect(undeclared.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })
})

describe('a file', () => {
  const lines_max = 500
  /** Tables of cases may be longer than code. */
  const test_lines_max = 700

  test('has 500 lines at most, a test 700, unless there is a reason', () => {
    const reasons: Record<string, string> = {
      'cli/generated.ts': 'made from openapi.json',
      'sdk/src/generated-resources.ts': 'made from openapi.json',
      'sdk/src/types.ts': 'made from openapi.json',
      'src/kv/kv.test.ts': 'every rule of the store, each once, in the order of its page',
      'src/callbacks/deliver.test.ts': 'every kind of receiver, each once',
      'src/checkpoints/checkpoints.test.ts': 'every rule of checkpoints, each once',
      'src/dlq/dlq.test.ts': 'every rule of dead letters, each once',
      'src/schedules/schedules.test.ts': 'every rule of schedules, each once',
      'test/sdk-retries.test.ts': 'every operation of the table of repeats, each once',
    }
    const long = code.filter((file) => {
      return textOf(file).split('\n').length > (file.endsWith('.test.ts') ? test_lines_max : lines_max)
    })
    expect(long.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  test('of src has fewer than 180 lines, nine of ten', () => {
    const lengths = source
      .map((file) => textOf(file).split('\n').length - 1)
      .toSorted((one, other) => one - other)
    expect(lengths.length).toBeGreaterThan(200)
    expect(lengths[Math.floor(lengths.length * 0.9)]!).toBeLessThan(180)
  })

  test('has functions of at most 70 lines: the linter holds their bodies to 64, tests and benchmarks apart', () => {
    const { linter, overrides } = JSON.parse(textOf('biome.json'))
    const rule = linter.rules.complexity.noExcessiveLinesPerFunction
    expect(rule).toEqual({ level: 'error', options: { maxLines: 64, skipBlankLines: false } })
    const exempt = overrides.flatMap(({ includes }: { includes: string[] }) => includes)
    expect(exempt).toEqual(['**/*.test.ts', '**/*.test.tsx', 'test/**', 'bench/**'])
  })

  test('exports by name', () => {
    const reasons: Record<string, string> = {
      'src/db/sql.d.ts': 'how Bun hands over a file that is imported as text',
      'src/site/files.d.ts': 'how Bun hands over a file that is imported as text, or as a path',
    }
    const found = code.filter((file) => /^\s*export (default|\* from)/m.test(textOf(file)))
    expect(found.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  test('exports nothing that is not used elsewhere', () => {
    const unused = source.flatMap((file) => {
      if (isRoutes(file)) return []
      const names = [...textOf(file).matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)].map(
        ([, name]) => name!,
      )
      const others = code.filter((other) => other !== file)
      return names.flatMap((name) =>
        others.some((other) => wordsOf(other).has(name)) ? [] : [`${file} ${name}`],
      )
    })
    expect(unused).toEqual([])
  })

  test('leaves nothing to do later, and silences no tool without a reason', () => {
    const later = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X'].map((word) => `\\b${word}\\b`).join('|'))
    expect(files.filter((file) => isText(file) && later.test(textOf(file)))).toEqual([])
    const silenced = code.flatMap((file) =>
      [...textOf(file).matchAll(/^.*biome-ignore(?!\[).*$/gm)].map(([line]) => [file, line] as const),
    )
    const unreasoned = silenced.filter(([file, line]) => {
      return file !== 'test/tidy.test.ts' && !/biome-ignore(-\w+)? [a-z/A-Z\d]+: \S+ \S+/.test(line)
    })
    expect(unreasoned).toEqual([])
    const typed_away = new RegExp(['@ts-' + 'ignore', '@ts-' + 'nocheck', '@ts-' + 'expect-error'].join('|'))
    expect(code.filter((file) => typed_away.test(textOf(file)))).toEqual([])
  })

  test('runs for every test in it: none is skipped, none runs alone', () => {
    const partial = new RegExp(
      `\\b(test|it|describe)\\.(${['skip', 'only', 'todo', 'failing'].join('|')})(If)?\\b`,
    )
    expect(code.filter((file) => file.endsWith('.ts') && partial.test(codeOf(file)))).toEqual([])
  })

  test('knows no machine: no absolute path of one, no registry', () => {
    const home = new RegExp(`(^|[^\\w.:/-])/(${['work', 'root', 'home', 'Users'].join('|')})/`, 'm')
    const registry = new RegExp(['registry', '\\.(npmjs|yarnpkg|npmmirror)|"resolved": "http'].join(''))
    expect(files.filter((file) => isText(file) && home.test(textOf(file)))).toEqual([])
    expect(files.filter((file) => isText(file) && registry.test(textOf(file)))).toEqual([])
    expect(Object.keys(JSON.parse(textOf('package-lock.json')).packages).length).toBeGreaterThan(10)
  })
})

describe('the run of the tests', () => {
  test('has timings of files that are there', () => {
    const timed = Object.keys((JSON.parse(textOf('test/timings.json')) as { files: object }).files)
    expect(timed.filter((file) => !files.includes(file))).toEqual([])
  })

  test('leaves out of the quick run what starts a browser or a service, and names only files that are there', () => {
    const found = quickFiles()
    expect(found).toContain('src/jobs/concurrency.test.ts')
    for (const file of ['work-nodes', 'work-crash', 'crash', 'console-pages', 'cli-binary']) {
      expect(found).not.toContain(`test/${file}.test.ts`)
    }
  })
})

interface Import {
  from: string
  to: string
}

/** Every relative import inside src. */
function imports(): Import[] {
  const found = source.flatMap((from) =>
    [...textOf(from).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) => ({
      from,
      to: normalize(join(dirname(from), path!)),
    })),
  )
  expect(found.length).toBeGreaterThan(100)
  return found.filter(({ to }) => to.startsWith('src/') && to.endsWith('.ts'))
}

function shown({ from, to }: Import): string {
  return `${from} -> ${to}`
}

/** `routes.ts`, or a part of it as in `list-routes.ts`. */
function isRoutes(file: string): boolean {
  return /^(\w+-)?routes\.ts$/.test(basename(file))
}

function isText(file: string): boolean {
  return !['.png', '.ico', '.woff2', '.gz'].includes(extname(file)) && file !== 'test/tidy.test.ts'
}
