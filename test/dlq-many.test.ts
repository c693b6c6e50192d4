// Operations on many dead letters by the SDK and by the command line.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { Waystation } from '../sdk/src/index.ts'
import { Bench } from './support/cli.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const bench = new Bench()
afterAll(() => bench.clean())

forEachService('Many dead letters', (service) => {
  let tenant: TestTenant
  let client: Waystation
  beforeEach(async () => {
    tenant = await service.signUp()
    client = new Waystation({ url: service.url, key: tenant.api_key })
    for (const error of ['order 7: card declined', 'order 8: card declined', 'other']) {
      service.clock.advance(1)
      await client.dlq.create({ payload: 1, error })
    }
  })

  const run = (...words: string[]) =>
    bench.run(words, { WAYSTATION_URL: service.url, WAYSTATION_KEY: tenant.api_key })

  const filter = { cause: 'order …: card declined' }

  test('are counted, discarded and followed by the SDK', async () => {
    const causes = await client.dlq.causes()
    expect(causes.items.map(({ cause, count }) => [cause, count])).toEqual([
      [filter.cause, 2],
      ['other', 1],
    ])
    const counted: { matched: number } = await client.dlq.discardMany({ filter, dry_run: true })
    expect(counted).toEqual({ matched: 2 })
    const begun = await client.dlq.discardMany({ filter })
    const looks: number[] = []
    const ended = await client.dlq.waitForOperation(begun.id, { onProgress: ({ done }) => looks.push(done) })
    expect(ended).toMatchObject({ id: begun.id, status: 'succeeded', done: 2 })
    expect(looks.at(-1)).toBe(2)
    const outcomes: string[] = []
    for await (const { outcome } of client.dlq.operationItems(begun.id)) outcomes.push(outcome)
    expect(outcomes).toEqual(['done', 'done'])
    const again = await client.dlq.redriveMany({ filter: { ...filter, status: 'archived' } })
    expect(await client.dlq.waitForOperation(again.id)).toMatchObject({ verb: 'redrive', done: 2 })
    expect(await client.dlq.cancelOperation(again.id)).toMatchObject({ status: 'succeeded' })
  })

  test('need a filter, or --all, on the command line', async () => {
    for (const verb of ['discard-many', 'redrive-many']) {
      const none = await run('dlq', verb)
      expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('or --all')])
      const both = await run('dlq', verb, '--all', '--cause', 'other')
      expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('cannot be combined')])
    }
    expect((await client.dlq.discardMany({ filter: {}, dry_run: true })).matched).toBe(3)
  })

  test('are counted, then discarded with progress, on the command line', async () => {
    const counted = await run('dlq', 'discard-many', '--cause', filter.cause, '--dry-run', '--json')
    expect([counted.code, JSON.parse(counted.stdout)]).toEqual([0, { matched: 2 }])
    const done = await run('dlq', 'discard-many', '--cause', filter.cause, '--wait', '--json')
    expect(JSON.parse(done.stdout)).toMatchObject({ status: 'succeeded', matched: 2, done: 2 })
    const all = await run('dlq', 'redrive-many', '--all', '--status', 'archived', '--max', '1', '--wait')
    expect([all.code, all.stderr]).toEqual([0, expect.stringContaining('1 of 1')])
    const list = await run('operation', 'list', '--all', '--json')
    expect(list.stdout.trim().split('\n')).toHaveLength(2)
  })
})
