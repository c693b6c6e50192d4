// The statements of the service read as text: where they stand, that both engines take them, and that each names its tenant.

import { describe, expect, test } from 'bun:test'
import { basename } from 'node:path'
import '../src/app.ts'
import { type Statement, statements, unnamed } from '../src/db/db.ts'
import { postgresText } from '../src/db/dialect.ts'
import { migrations } from '../src/features.ts'
import { codeOf, isStore, placeOf, source, textOf } from './support/source.ts'

describe('SQL', () => {
  const allowed: Record<string, string> = {
    'src/db/db.ts': 'defines what a statement is',
    'src/db/distributed.ts': 'distributes the tables of all features',
    'src/db/migrate.ts': 'migrations',
    'src/db/newest.ts': 'makes the lists of two features that are filtered alike',
    'src/db/purge.ts': 'makes the purges of all features',
    'src/db/schema-lock.ts': 'the lock of PostgreSQL under which the schema changes',
    'src/db/recount.ts': 'counts over the tables of all features',
    'src/db/reseal.ts': 'seals columns of all features again',
    'src/db/row-security.ts': 'the roles, rights and policies of PostgreSQL',
    'src/db/same-database.ts': 'a lock of PostgreSQL that two logins of one database see',
    'src/db/table-sizes.ts': 'looks at all tables, for the operator',
    'src/db/stored.ts': 'the drivers count what is stored with every commit',
  }

  test('stands in store files and in db', () => {
    const defines = /\b(sql|writesRow|acrossTenants|byHash|unnamed|unnamedAcrossTenants)(<[^(]*>)?\(/
    const found = source.filter((file) => !isStore(file) && defines.test(codeOf(file)))
    expect(found.toSorted()).toEqual(Object.keys(allowed).toSorted())
    const texts = /[`'"]\s*(select|insert into|update|delete from|create table|pragma|begin)\s+\w/i
    const elsewhere = source.filter((file) => {
      return texts.test(codeOf(file)) && !isStore(file) && !file.startsWith('src/db/')
    })
    expect(elsewhere).toEqual([])
  })

  const all: Statement<unknown>[] = [...statements.values()]

  test('is named after its feature, each statement once', () => {
    const named = source.flatMap((file) =>
      [
        ...textOf(file).matchAll(
          /\b(?:sql|writesRow|acrossTenants|byHash|purging)(?:<[^(]*>)?\(\s*['`](\w+)\./g,
        ),
      ].map((match) => [file, match[1]!] as const),
    )
    expect(named.length).toBeGreaterThan(40)
    const strange = named.filter(([file, noun]) => noun !== ownerOf(file))
    expect(strange).toEqual([])
    expect(all.filter(({ name }) => !/^[a-z_]+\.[a-z_]+$/.test(name))).toEqual([])
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  })

  const unportable: [what: string, pattern: RegExp][] = [
    ['LIKE', /\bi?like\b|\bglob\b|\bsimilar to\b|~/i],
    ['the clock', /\bnow\(|\bcurrent_|\bdatetime\(|\bstrftime\(|\bunixepoch\(|\blocaltime/i],
    ['chance', /\brandom\w*\(|\bgen_random/i],
    // Both know this one alike: elsewhere whole numbers are divided as whole numbers.
    ['casts', /::|\bcast\((?!\w+ as double precision\))/i],
    ['a parameter that may be null', /\$\d+\s+is\s+(not\s+)?null/i],
    ['JSON', /->|\bjsonb?_|\bjsonb?\b|@>/i],
    ['true and false', /\b(true|false)\b/i],
    [
      'a flag that is not compared',
      /\b(and|or|where|when)\s+[\w.]+\s*(\)|$|\b(and|or|then|order|group|limit|returning)\b)/im,
    ],
    ['locks', /\bfor\s+(update|share)\b|\bskip locked\b|\bpg_/i],
    [
      "one engine's words",
      /\binsert or\b|\breplace into\b|\bifnull\(|\bnvl\(|\bdistinct on\b|\browid\b|\bctid\b|\boffset\b/i,
    ],
    ['a number or text pasted in', /'\s*\+|\$\{/],
  ]
  test.each(unportable)('keeps to what both engines understand alike: no %s', (_, pattern) => {
    expect(all.filter(({ text }) => pattern.test(text)).map(({ name }) => name)).toEqual([])
  })

  // Citus counts the rows that such an insert has selected: a loser of a race would take itself for the winner.
  test('returns the row that an insert from a select adds or, where it is there already, does not', () => {
    const uncertain = (text: string) =>
      /\binsert into\b[^;]*\bselect\b[^;]*\bon conflict\b[^;]*\bdo nothing\b/i.test(text) &&
      !/\bdo nothing\s+returning\b/i.test(text)
    expect(all.filter(({ text }) => uncertain(text)).map(({ name }) => name)).toEqual([])
    const caught = 'insert into a (b) select b from c where d = 1 on conflict (b) do nothing'
    expect([caught, `${caught} returning b`].map(uncertain)).toEqual([true, false])
  })

  test('would be caught by these patterns', () => {
    const caught: Record<string, string> = {
      LIKE: `select a from b where c like 'x%'`,
      'the clock': 'select now()',
      chance: 'order by random()',
      casts: 'select $1::bigint',
      'a parameter that may be null': 'where ($1 is null or a = $1)',
      JSON: "select a->>'b'",
      'true and false': 'where a = true',
      'a flag that is not compared': 'where tenant_id = $1 and counted',
      locks: 'select a from b for update',
      "one engine's words": 'insert or ignore into a',
      'a number or text pasted in': "where a = '' + b",
    }
    for (const [what, pattern] of unportable)
      expect([what, pattern.test(caught[what]!)]).toEqual([what, true])
  })

  const owned = migrations.flatMap(({ text }) =>
    [...text.matchAll(/create table (\w+) \(([^;]*)\)/g)].flatMap(([, table, columns]) =>
      /^\s*tenant_id /m.test(columns!) ? [table!] : [],
    ),
  )
  /** Each use of a table whose rows belong to tenants. */
  const tables = new RegExp(`\\b(from|update|into|join)\\s+(${owned.join('|')})\\b`, 'gi')

  test('names the tenant wherever a row belongs to one', () => {
    const reasons: Record<string, string> = {
      'dlq.next_expiry': 'finds the next time of a test clock',
      'effects.next_expiry': 'finds the next time of a test clock',
      'inbox.next_expiry': 'finds the next time of a test clock',
      'kv.next_expiry': 'finds the next time of a test clock',
      'dlq.ended_operations': 'finds the operations of a sweep',
      'inbox.clearable': 'finds the inboxes of a sweep',
      'inbox.deletable': 'finds the inboxes of a sweep',
      'jobs.count_due': 'metrics count the due work of all tenants',
      'jobs.due_at_once': 'finds the due work of all tenants',
      'jobs.due': 'finds the due work of all tenants',
      'jobs.leased_due': 'finds the leases that a test clock waits for',
      'jobs.next_at': 'the next due time of all tenants',
      'jobs.next_at_once': 'the next due time of all tenants',
      'jobs.oldest_due': 'a tick waits for the work of all tenants',
      'jobs.tenants': 'walks over all tenants',
      'journal.next_unnumbered_tenant': 'walks over the tenants with news',
      'journal.tenants_due': 'finds the tenants whose events are old',
      'kv.tenants_asking': 'finds the tenants of a sweep',
      'kv.tenants_due': 'finds the tenants of a sweep',
      'lookups.find': 'the look-up that finds the tenant, by the hash of a key or token',
      'tenants.all': "the operator's list",
      'tenants.purgeable': 'finds the tenants to purge',
      'tenants.pause_pending': 'finds the tenants whose jobs are to be paused or resumed',
      'tenants.plans': 'asked once, at the start',
    }
    expect(owned.length).toBeGreaterThan(6)
    // A sweep removes a chunk of what has expired, of all tenants.
    const isSweep = ({ name, text }: Statement<unknown>) =>
      /^\w+\.sweep(_\w+)?$/.test(name) &&
      /^delete from \w+\s+where \{rows_in [^}]*\}.*\{skip_locked\}/s.test(text)
    // Before it, the tenants of that chunk are found: of their rows it reads no more than whose they are, how many, and
    // the time of the last.
    const findsTenants = ({ name, text }: Statement<unknown>) =>
      /^\w+\.tenants_\w+$/.test(name) &&
      /^select (distinct tenant_id|tenant_id, count\(\*\) as \w+(?:, max\((\w+)\) as until)?) from\s+\(select tenant_id(?:, \2)? from \w+ \{by \w+\}\s+where [^()]*(\('\w+'(, '\w+')*\)[^()]*)? order by \w+ limit \$\d+\) as due(\s+group by tenant_id)?$/.test(
        text,
      )
    expect(all.filter(findsTenants).length).toBeGreaterThan(4)
    const unbound = all.filter((statement) => {
      if (isSweep(statement) || findsTenants(statement)) return false
      const { text } = statement
      const uses = text.match(tables)?.length ?? 0
      // The rows of a chunk are those that its own select, which is looked at as well, has chosen.
      const bound =
        text.match(
          /\btenant_id\s*=|\(tenant_id, [\w, ]+\) <=? \(\$\d+|\binsert into \w+\s*\([^)]*\btenant_id\b|\{rows_in /gi,
        )?.length ?? 0
      return bound < uses
    })
    expect(unbound.map(({ name }) => name).toSorted()).toEqual(Object.keys(reasons).toSorted())
    // Row-level security shows these the rows of all tenants, or the one row of a hash, and no other statement.
    const beyond = all.filter(({ scope }) => scope === 'all' || scope === 'hash')
    const expected = all.filter((statement) => {
      return isSweep(statement) || findsTenants(statement) || Object.hasOwn(reasons, statement.name)
    })
    expect(beyond.map(({ name }) => name).toSorted()).toEqual(expected.map(({ name }) => name).toSorted())
    expect(beyond.filter(({ scope }) => scope === 'hash').map(({ name }) => name)).toEqual(['lookups.find'])
    const without = all.filter(({ scope, text }) => scope === 'none' && text.match(tables))
    expect(without.map(({ name }) => name)).toEqual([])
  })

  test('outside the list of names sees no tenant either, unless it names one or says so', () => {
    expect(unnamed('test.none', 'select tenant_id from tenants').scope).toBe('none')
    expect(unnamed('test.own', 'select name from tenants where tenant_id = :tenant_id').scope).toBe('tenant')
    const reasons: Record<string, string> = {
      'clock.end_leases': 'ends the leases of all jobs, where a test clock stands still',
      'jobs.due_overview': "the operator's list of due jobs",
      'migrate.${name}': 'migrations change the rows of all tenants',
      'sizes.count': "the operator's sizes of all tables, on SQLite",
    }
    const said = source.flatMap((file) =>
      [...textOf(file).matchAll(/\bunnamedAcrossTenants(?:<[^(]*>)?\(\s*['`]([^'`]+)['`]/g)].map(
        ([, name]) => name!,
      ),
    )
    expect(said.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  test('leads to the shard of its tenant on a distributed database, but for look-ups and work on all tenants', () => {
    const reasons: Record<string, string> = {
      'dlq.next_expiry': 'finds the next time of a test clock',
      'effects.next_expiry': 'finds the next time of a test clock',
      'inbox.next_expiry': 'finds the next time of a test clock',
      'kv.next_expiry': 'finds the next time of a test clock',
      'credentials.sweep': 'a sweep',
      'dlq.ended_operations': 'finds the operations of a sweep',
      'dlq.tenants_ended': 'finds the tenants of a sweep',
      'dlq.tenants_expired': 'finds the tenants of a sweep',
      'effects.tenants_forgetting': 'finds the tenants of a sweep',
      'effects.tenants_run_out': 'finds the tenants of a sweep',
      'idempotency.sweep': 'a sweep',
      'inbox.clearable': 'finds the inboxes of a sweep',
      'inbox.deletable': 'finds the inboxes of a sweep',
      'inbox.tenants_expired': 'finds the tenants of a sweep',
      'jobs.due': 'finds the due work of all tenants',
      'jobs.count_due': 'metrics count the due work of all tenants',
      'jobs.due_at_once': 'finds the due work of all tenants',
      'jobs.leased_due': 'finds the leases that a test clock waits for',
      'jobs.next_at': 'the next due time of all tenants',
      'jobs.next_at_once': 'the next due time of all tenants',
      'jobs.oldest_due': 'a tick waits for the work of all tenants',
      'jobs.tenants': 'walks over all tenants',
      'journal.next_unnumbered_tenant': 'walks over the tenants with news',
      'journal.tenants_due': 'finds the tenants whose events are old',
      'kv.tenants_asking': 'finds the tenants of a sweep',
      'kv.tenants_due': 'finds the tenants of a sweep',
      'kv.tenants_expired': 'finds the tenants of a sweep',
      'kv.tenants_with_tombstones': 'finds the tenants of a sweep',
      'lookups.find': 'leads to the tenant; its table lies by the hash',
      'quotas.tenants_old_calls': 'finds the tenants of a sweep',
      'seal.add_key': 'a table without tenants',
      'seal.keys': 'a table without tenants',
      'seal.tenants_checkpoint': 'finds the tenants of a sweep',
      'seal.tenants_pending': 'finds the tenants of a sweep',
      ...Object.fromEntries(
        [
          ...['begin', 'end', 'find', 'mark', 'move', 'release'].map((verb) => `clock.${verb}`),
          ...['begin', 'begin_again', 'complete', 'end', 'find'].map((verb) => `quarantine.${verb}`),
          ...['find', 'keep', 'lock_check', 'remove', 'replace_check', 'sealing'].map(
            (verb) => `secrets.${verb}`,
          ),
          ...['page', 'update'].flatMap((verb) =>
            ['seal_keys_private_key', 'service_settings_value'].map((column) => `reseal.${verb}_${column}`),
          ),
        ].map((name) => [name, 'a table without tenants']),
      ),
      'tenants.all': "the operator's list",
      'tenants.pause_pending': 'finds the tenants whose jobs are to be paused or resumed',
      'tenants.plans': 'asked once, at the start',
      'tenants.purgeable': 'finds the tenants to purge',
      'usage.tenants_old': 'finds the tenants of a sweep',
    }
    const told = all.map((statement) => {
      const { text } = statement.distributed ?? statement
      return { name: statement.name, text: postgresText(text, 'citus') }
    })
    // Citus goes by an equal sign and a parameter, and passes it on to what is joined by the tenant, but not to a select
    // within a select. So each use of a table needs its own.
    const leads = new RegExp(
      `\\btenant_id = \\$\\d+|\\binsert into \\w+\\s*\\([^)]*\\btenant_id\\b|` +
        `\\bjoin (${owned.join('|')}) \\w+\\s+on [^()]*?\\b\\w+\\.tenant_id = \\w+\\.tenant_id\\b`,
      'gi',
    )
    const astray = told.filter(({ text }) => {
      const uses = text.match(tables)?.length ?? 0
      return (text.match(leads)?.length ?? 0) < Math.max(uses, 1)
    })
    expect(astray.map(({ name }) => name).toSorted()).toEqual(Object.keys(reasons).toSorted())
    // Rows that are named by their places are those of one shard alone: other shards have the same places.
    const by_place = /\bctid = any/
    const on_shard = /\btenant_id = \$\d+ and\s+ctid = any/
    const placed = told.filter(({ text }) => by_place.test(text))
    expect(placed.length).toBeGreaterThan(20)
    expect(placed.filter(({ text }) => !on_shard.test(text)).map(({ name }) => name)).toEqual([])
  })
})

/** The first part of a statement's name: its folder, or the file when it is not a store. */
function ownerOf(file: string): string {
  const owner = isStore(file) ? placeOf(file) : basename(file, '.ts')
  return owner.replaceAll('-', '_')
}
