import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, known_kinds } from '../../test/support/job-bench.ts'
import { schedule } from '../../test/support/job-features.ts'
import { callback_job, timeout_job } from '../checkpoints/jobs.ts'
import { anyDue } from './due-store.ts'
import { attempts_max } from './job.ts'
import { kindsOf } from './kind.ts'

test('two kinds of jobs with one name are refused', () => {
  expect(() => kindsOf([callback_job, { ...timeout_job, name: callback_job.name }])).toThrow(
    new Error('two kinds of jobs have the same name'),
  )
})

test.each([
  [attempts_max, true],
  [attempts_max + 1, false],
])('a kind with %d attempts has a time for each of them: %p', (attempts, is_accepted) => {
  const kinds = () => kindsOf([{ ...callback_job, attempts_max: attempts }])
  if (is_accepted) expect(kinds().size).toBe(1)
  else expect(kinds).toThrow(new Error(`jobs of kind callback have ${attempts_max} attempts at most`))
})

forEachDatabase('a due job of a kind that this version does not know', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  test('is left alone and reported once; no tick waits for it, and other jobs run', async () => {
    const caller = await bench.tenant()
    const of_another_version = await schedule(bench, caller)
    await bench.write(`update jobs set kind = 'of_another_version' where source_id = :id`, {
      id: of_another_version.id,
    })
    expect(await anyDue(bench.db, bench.clock.now(), known_kinds)).toBe(false)
    await schedule(bench, caller)
    bench.network.answer = () => 204
    const worker = bench.worker()
    for (let times = 0; times < 2; times++) await worker.tick(60_000)
    expect(bench.network.sent).toHaveLength(1)
    expect(bench.errors).toEqual([
      new Error('jobs of kind of_another_version are due, which this version does not know'),
    ])
    const [left] = (await bench.jobs(caller.tenant_id)).filter(({ kind }) => kind === 'of_another_version')
    expect(left).toMatchObject({ attempts: 0, fence: 0 })
  })
})
