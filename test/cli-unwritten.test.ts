// Output of the CLI that cannot be written, as on a full disk: the command says so, and how to get what is lost.

import { afterAll, expect, test } from 'bun:test'
import { Bench, cli_command } from './support/cli.ts'

const bench = new Bench()
afterAll(() => bench.clean())

/** To a file that may have no bytes: each write fails with EFBIG, as with ENOSPC on a full disk. */
async function toFullFile(words: string[]) {
  using service = Bun.serve({
    port: 0,
    fetch: () => Response.json({ id: 'dlq_1', namespace: 'state', key: 'k', version: 1, value: 1 }),
  })
  const limited = `ulimit -f 0; trap '' XFSZ; "$@" > out`
  const args = ['-c', limited, 'bash', ...cli_command, ...words, '--url', service.url.origin]
  return await bench.run(args, {}, { command: ['bash'], cwd: bench.folder() })
}

const message = 'The output cannot be written (EFBIG).'

test('A read whose output is lost says so, and can be run again', async () => {
  for (const words of [['kv', 'get', 'state', 'k'], ['openapi']]) {
    const { code, stderr } = await toFullFile(words)
    expect([code, stderr]).toEqual([1, `waystation: OUTPUT_LOST: ${message} Next: Run it again.\n`])
  }
})

test('A creation whose output is lost names the key that repeats it', async () => {
  const { code, stderr } = await toFullFile(['dlq', 'create', '1', '--error', 'e', '--json'])
  const { error } = JSON.parse(stderr)
  const key = error.details.idempotency_key
  const next = `It may have happened: with --idempotency-key ${key} it can be run again, and happens once.`
  expect([code, error]).toEqual([
    1,
    { code: 'OUTPUT_LOST', message, details: { idempotency_key: key }, next, exit_code: 1 },
  ])
})

test('Another change whose output is lost asks to be looked at first', async () => {
  const { code, stderr } = await toFullFile(['kv', 'put', 'state', 'k', '1'])
  const next = 'It may have happened: look before you run it again.'
  expect([code, stderr]).toEqual([1, `waystation: OUTPUT_LOST: ${message} Next: ${next}\n`])
})
