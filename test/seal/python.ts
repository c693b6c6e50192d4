// examples/verify_bundle.py as a process that checks one bundle after the other.

import { join } from 'node:path'
import type { Verifier } from './rounds.ts'

export interface Python {
  verify: Verifier
  stop(): Promise<void>
}

/** True when there is Python 3.10 or newer. */
export function hasPython(): boolean {
  if (Bun.which('python3') === null) return false
  return Bun.spawnSync(['python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).exitCode === 0
}

/** Throws when there is no Python 3.10 or newer. */
export function startPython(): Python {
  if (!hasPython()) throw new Error('python3 of version 3.10 or newer is needed')
  const child = Bun.spawn(['python3', join(import.meta.dir, 'check.py')], {
    ...{ stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' },
  })
  const lines = linesOf(child.stdout)
  return {
    async verify(check) {
      child.stdin.write(`${JSON.stringify(check)}\n`)
      await child.stdin.flush()
      const { value, done } = await lines.next()
      if (done) throw new Error('the Python verifier has ended')
      return value === 'valid' ? null : value
    },
    async stop() {
      await child.stdin.end()
      await child.exited
    },
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
      yield text.slice(0, end)
      text = text.slice(end + 1)
    }
  }
}
