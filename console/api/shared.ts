// A call that several parts of a page make at the same moment is made once: the numbers of the navigation and the overview show the
// same lists.

import type { Query } from './address.ts'
import type { Result } from './client.ts'
import { heard } from './journal.ts'
import { admin_key, ask, changes } from './session.ts'

interface Call {
  answer: Promise<Result<unknown>>
  /** Changes with all that happens: the answer may miss what came after its call had begun. */
  since: string
  users: number
  controller: AbortController
}

/** Those that are on their way. */
const calls = new Map<string, Call>()

/** A GET, or the one that is on its way. It is aborted with the last of its signals. */
export async function askShared<T>(path: string, query: Query, signal: AbortSignal): Promise<Result<T>> {
  const name = JSON.stringify([admin_key.peek(), path, query])
  const since = `${heard()} ${changes.peek()}`
  const running = calls.get(name)
  const call = running?.since === since ? running : begin(path, query, since)
  calls.set(name, call)
  const end = () => {
    if (calls.get(name) === call) calls.delete(name)
  }
  const leave = () => {
    call.users -= 1
    if (call.users > 0) return
    end()
    call.controller.abort()
  }
  call.users += 1
  signal.addEventListener('abort', leave)
  const answer = await call.answer
  signal.removeEventListener('abort', leave)
  end()
  return answer as Result<T>
}

function begin(path: string, query: Query, since: string): Call {
  const controller = new AbortController()
  const answer = ask<unknown>('GET', path, { query, signal: controller.signal })
  return { answer, since, users: 0, controller }
}
