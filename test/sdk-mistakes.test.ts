// Functions given to the SDK that would never run: each is refused before anything is claimed or read for it.

import { describe, expect, test } from 'bun:test'
import { runInNewContext } from 'node:vm'
import { Waystation } from '../sdk/src/index.ts'
import { failureOf } from './support/sdk.ts'

/** A client that notes what it sends, and what each method that takes a function answers to `given`. */
async function answersTo(given: never) {
  const sent: string[] = []
  const client = new Waystation({
    url: 'http://service.test',
    fetch: async (url) => {
      sent.push(url)
      return Response.json({ error: { code: 'KEY_NOT_FOUND', message: 'm' } }, { status: 404 })
    },
  })
  const errors = await Promise.all([
    failureOf(client.effects.once({ type: 'refund', key: 'k', payload: 1 }, given)),
    failureOf(client.dlq.work(given, { stop_when_empty: true })),
    failureOf(client.kv.update('state', 'runs', given)),
  ])
  return { sent, errors: errors.map(String) }
}

function* yielding() {
  yield 'never'
}

describe('A function that would never run is refused, and nothing is sent', () => {
  test.each([
    ['a function with a yield', yielding],
    [
      'an async function with a yield',
      async function* () {
        yield 'never'
      },
    ],
    ['a method with a yield', { *work() {} }.work],
    ['one that is bound', yielding.bind(null)],
    ['one of another realm', runInNewContext('(function* () {})')],
  ])('%s', async (_, given) => {
    const { sent, errors } = await answersTo(given as never)
    const why = 'a function with a yield does nothing when it is called: give one without'
    expect(errors).toEqual(['work', 'handler', 'next'].map((name) => `TypeError: ${name}: ${why}`))
    expect(sent).toEqual([])
  })

  test.each([[undefined], [null], ['refund'], [{ type: 'refund' }]])('%p', async (given) => {
    const { sent, errors } = await answersTo(given as never)
    expect(errors).toEqual(['work', 'handler', 'next'].map((name) => `TypeError: ${name} must be a function`))
    expect(sent).toEqual([])
  })
})
