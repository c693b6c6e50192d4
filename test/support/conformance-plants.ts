// How a fault is planted: changes of requests, answers and callbacks, and those that need to remember something.

import type { Fault, Reply, Request, Send } from './conformance-proxy.ts'

/** The returned value is ignored, so that a short function may return any. */
type Change<T extends unknown[]> = (...args: T) => unknown

export function onAnswer(change: Change<[Reply]>): Fault {
  return { answer: (reply) => void change(reply) }
}

export function onReply(change: Change<[Reply, Request]>): Fault {
  return { answer: (reply, request) => void change(reply, request) }
}

export function onText(change: (text: string) => string): Fault {
  return onAnswer((reply) => become(reply, reply.status, change(reply.text)))
}

// biome-ignore lint/suspicious/noExplicitAny: any answer may pass
export function onJson(part: string, change: (body: any) => unknown): Fault {
  return onReply((reply, { path }) => {
    if (path.includes(part) && isJson(reply.text)) reply.text = JSON.stringify(change(JSON.parse(reply.text)))
  })
}

export function onRequest(change: Change<[Request]>): Fault {
  return {
    request: (request) => {
      const changed = change(request)
      return isReply(changed) ? changed : undefined
    },
  }
}

/** Another status for one that is answered. */
export function answering(status: number, instead: number): Fault {
  return onAnswer((reply) => {
    if (reply.status === status) reply.status = instead
  })
}

export function onPath(change: (path: string) => string): Fault {
  return onRequest((request) => {
    request.path = change(request.path)
  })
}

/** A hundred times as long as it was asked for. */
export function later(field: string): () => Fault {
  const pattern = new RegExp(`"${field}":(\\d+)`)
  return () => onBody((text) => text.replace(pattern, (_, n: string) => `"${field}":${Number(n) * 100}`))
}

export function onBody(change: (text: string) => string): Fault {
  return onRequest((request) => {
    if (typeof request.body === 'string') request.body = change(request.body)
  })
}

export function onCallback(change: Change<[Request]>): Fault {
  return { callback: (callback) => void change(callback) }
}

function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && 'status' in value && 'text' in value
}

export function reply(status: number, text: string): Reply {
  const headers = new Headers({ 'content-type': 'application/json', 'x-request-id': 'req_0123456789' })
  return { status, headers, text }
}

export function become(answer: Reply, status: number, text: string): void {
  answer.status = status
  answer.text = text
}

export function internal(answer: Reply): void {
  become(answer, 500, answer.text.replace('INVALID_JSON', 'INTERNAL'))
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export function asBearer({ headers }: Request): void {
  headers.set('authorization', `Bearer ${headers.get('x-api-key')}`)
  headers.delete('x-api-key')
}

/** Calls of these paths go out with the admin key of the last tenant. */
export function lendsAdmin(paths: RegExp): () => Fault {
  return () => {
    let key = ''
    return {
      request: (request) => {
        key = request.headers.get('x-admin-key') ?? key
        if (!paths.test(request.path)) return undefined
        for (const name of ['x-agent-id', 'x-api-key']) request.headers.delete(name)
        request.headers.set('x-admin-key', key)
        return undefined
      },
    }
  }
}

export function showsKeys(): Fault {
  const keys = new Map<string, string>()
  return onReply((answer, { method, path }) => {
    if (!path.startsWith('/v1/agents') || !isJson(answer.text)) return
    const body = JSON.parse(answer.text)
    if (method === 'POST') keys.set(body.agent_id, body.api_key)
    for (const item of body.items ?? []) item.api_key = keys.get(item.agent_id) ?? item.api_key
    answer.text = JSON.stringify(body)
  })
}

/** A key that was rotated stands for the new one. */
export function livesOn(): Fault {
  const newer = new Map<string, string>()
  const newest = new Map<string, string>()
  return {
    request: ({ headers }) => {
      const key = headers.get('x-api-key')
      if (key && newer.has(key)) headers.set('x-api-key', newer.get(key)!)
      return undefined
    },
    answer: ({ text }) => {
      const { agent_id, api_key } = isJson(text) ? JSON.parse(text) : {}
      if (typeof api_key !== 'string' || api_key.includes('*')) return
      const old = newest.get(agent_id)
      if (old) newer.set(old, api_key)
      newest.set(agent_id, api_key)
    },
  }
}

/** A success on a path of `making` lends its credentials to all calls for the object on paths of `using`. */
export function remembers(making: RegExp, using: RegExp): Fault {
  const owners = new Map<string, Headers>()
  return {
    request: (request) => {
      const owner = using.test(request.path) && owners.get(request.path.split('/')[3]!)
      if (owner) request.headers = new Headers(owner)
      return undefined
    },
    answer: ({ status, text }, { method, path, headers }) => {
      if (method === 'POST' && status < 300 && making.test(path))
        owners.set(JSON.parse(text).id, new Headers(headers))
    },
  }
}

export function tellsForeign(): Fault {
  const known = new Set<string>()
  return onReply((answer, { method, path }) => {
    if (method === 'POST' && answer.status === 201) known.add(JSON.parse(answer.text).id)
    const is_known = known.has(path.split('/')[3] ?? '')
    if (answer.status === 404 && is_known)
      answer.text = answer.text.replace('"message":"', '"message":"Not yours: ')
  })
}

/** The first answer to a key, for all who send it. */
export function replaysAlways(): Fault {
  const first = new Map<string, Reply>()
  return {
    request: ({ headers, path }) => {
      const known = first.get(`${path} ${headers.get('idempotency-key')}`)
      if (!known || !headers.has('idempotency-key')) return undefined
      const again = new Headers(known.headers)
      again.set('idempotent-replayed', 'true')
      return { ...known, headers: again }
    },
    answer: (answer, { headers, path }) => {
      const key = headers.get('idempotency-key')
      if (key && answer.status === 201) first.set(`${path} ${key}`, { ...answer })
    },
  }
}

export function writesEntries(): Fault {
  return {
    answer: async (_, request, send) => {
      if (request.method !== 'POST' || request.path !== '/v1/dlq') return
      await send({ ...request, path: '/v1/audit', body: '{"action":"dlq.captured"}' })
    },
  }
}

export function claimsTwice(): Fault {
  const claimed = new Map<string, string>()
  return onReply((answer, { path }) => {
    if (!path.endsWith('/claim')) return
    if (answer.status === 200) claimed.set(path, answer.text)
    if (answer.status === 409 && claimed.has(path)) become(answer, 200, claimed.get(path)!)
  })
}

export function refusesSecond(paths: RegExp): () => Fault {
  return () => {
    const seen = new Set<string>()
    return onRequest(({ path }) => {
      if (!paths.test(path)) return undefined
      if (seen.has(path))
        return reply(
          409,
          '{"error":{"code":"INVALID_STATE","message":"It is.","request_id":"req_0123456789"}}',
        )
      seen.add(path)
      return undefined
    })
  }
}

async function followRedirect(callback: Request, send: Send): Promise<Reply> {
  const answer = await send(callback)
  const location = answer.headers.get('location')
  return location ? send({ ...callback, path: new URL(location).pathname }) : answer
}

export function followsRedirects(): Fault {
  return { callback: followRedirect }
}

/** Every answer of the receiver counts as 410 Gone. */
export function answersGone(): Fault {
  return {
    callback: async (callback, send) => {
      await send(callback)
      return reply(410, '')
    },
  }
}

export function callsOnCancel(): Fault {
  const urls = new Map<string, string>()
  return {
    answer: async ({ text, status }, { method, path }) => {
      if (method === 'POST' && path === '/v1/checkpoints' && status === 201) {
        const { id, callback_url } = JSON.parse(text)
        urls.set(id, callback_url)
      }
      const url = urls.get(path.split('/')[3] ?? '')
      if (method === 'DELETE' && url) await fetch(url, { method: 'POST', body: '{}' })
    },
  }
}

export function countsLooks(): Fault {
  return {
    request: async (request, send) => {
      const [, key] = /^\/api\/rate-limit\/(?!check|reset)([^?]+)$/.exec(request.path) ?? []
      if (request.method !== 'GET' || !key) return undefined
      const body = JSON.stringify({ key: decodeURIComponent(key), limit: 3, windowSeconds: 60 })
      const headers = new Headers(request.headers)
      headers.set('content-type', 'application/json')
      await send({ method: 'POST', path: '/api/rate-limit/check', headers, body })
      return undefined
    },
  }
}

/** Answers a repeat as it should, and makes the object once more. */
export function createsAgain(): Fault {
  const seen = new Map<string, Reply>()
  return {
    answer: async (answer, request, send) => {
      const key = request.headers.get('idempotency-key')
      if (!key || answer.status !== 201) return
      if (seen.has(key)) {
        const headers = new Headers(request.headers)
        headers.delete('idempotency-key')
        await send({ ...request, headers })
      }
      seen.set(key, answer)
    },
  }
}

/** Of any path: the first answer to a key. */
export function replaysOnAnyPath(): Fault {
  const first = new Map<string, Reply>()
  return {
    request: ({ headers }) => {
      const known = first.get(headers.get('idempotency-key') ?? '')
      if (!known) return undefined
      return { ...known, headers: new Headers([...known.headers, ['idempotent-replayed', 'true']]) }
    },
    answer: (answer, { headers }) => {
      const key = headers.get('idempotency-key')
      if (key && answer.status === 201) first.set(key, { ...answer })
    },
  }
}

/** Callbacks wait until the next tick. */
export function waitsForTick(): Fault {
  const held = new Set<() => void>()
  return {
    request: ({ path }) => {
      if (path === '/v1/tick') for (const release of held) release()
      return undefined
    },
    callback: async (callback, send) => {
      const ticked = new Promise<void>((resolve) => held.add(resolve))
      await Promise.race([ticked, Bun.sleep(3_000)])
      return send(callback)
    },
  }
}

/** One of the items is on no page. */
export function losesAnItem(): Fault {
  return onJson('/v1/', (body) => ({
    ...body,
    ...(body.items ? { items: body.items.filter((_: unknown, i: number) => i !== 1) } : {}),
  }))
}
