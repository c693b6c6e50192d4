// The journal followed live: one stream of Server-Sent Events, resumed where it broke. Where no stream comes through, such
// as a proxy that holds answers back, the same events are asked for every few seconds.

import { type Signal, signal } from '@preact/signals'
import type { JournalEvent } from '../workflows/event.ts'
import { base, type Query, withQuery } from './address.ts'
import { call } from './client.ts'
import { admin_key, ask } from './session.ts'
import { pause, visible } from './wait.ts'

/** `live`: events come as they happen. `asking`: they are asked for. `broken`: the service cannot be reached. */
export type Following = 'starting' | 'live' | 'asking' | 'broken'

export interface Follow {
  /** Which events: those of a workflow, or of a type. */
  query: Query
  /** The number of the last event that is known; null begins now. */
  after: number | null
  signal: AbortSignal
  onEvents: (events: JournalEvent[]) => void
  /** Called once where it begins now: what happens from then on comes. */
  onBegin?: () => void
  state?: Signal<Following>
}

const retry_ms = 1_000
const retry_ms_max = 30_000
const ask_every_ms = 3_000
/** The service writes a comment more often than this; a stream that is silent for longer is dead. */
const silent_ms_max = 60_000
/** Streams that break before their first byte, one after the other, until events are asked for instead. */
const mute_streams_max = 3

/** Follows until the signal aborts. The stream is closed while the tab is hidden: browsers allow six of them for a host. */
export async function followEvents({
  query,
  after,
  signal: stop,
  onEvents,
  onBegin,
  state = signal('starting'),
}: Follow) {
  let [last, failures, mute, asks] = [after, 0, 0, false]
  const take: Take = ({ events, position }) => {
    const known = last
    if (last === null && position !== null) {
      last = position
      onBegin?.()
    }
    const fresh = events.filter(({ seq }) => seq > (known ?? 0))
    if (fresh.length === 0) return
    last = fresh.at(-1)!.seq
    onEvents(fresh)
  }
  while (!stop.aborted) {
    await visible(stop)
    if (stop.aborted) return
    const heard = mute < mute_streams_max ? await streamOnce(query, last, stop, take, state) : 'mute'
    if (stop.aborted) return
    mute = heard === 'heard' ? 0 : mute + 1
    asks &&= heard !== 'heard'
    if (mute >= mute_streams_max || heard === 'none') {
      const answered = await askOnce(query, last, stop, take)
      failures = answered ? 0 : failures + 1
      // Streams may have failed because nothing was answered at all: one more is tried once something is.
      mute = answered ? mute_streams_max - (asks ? 0 : 1) : 0
      asks = answered
    } else failures = heard === 'heard' ? 0 : failures + 1
    if (document.hidden) continue
    state.value = failures > 0 ? 'broken' : asks ? 'asking' : state.value
    const wait_ms = failures > 0 ? Math.min(retry_ms_max, retry_ms * 2 ** failures) : ask_every_ms
    await pause(heard === 'heard' ? retry_ms : wait_ms, stop, [
      [window, 'online'],
      [document, 'visibilitychange'],
    ])
  }
}

interface Piece {
  events: JournalEvent[]
  /** Where the journal stood; null where the piece does not say. */
  position: number | null
}

type Take = (piece: Piece) => void

async function askOnce(query: Query, after: number | null, stop: AbortSignal, take: Take): Promise<boolean> {
  if (after === null) {
    // A wait of no time answers where the journal stands.
    const body = { any: [{}], wait_seconds: 0 }
    const place = await call<{ after: number }>(admin_key.peek() ?? '', 'POST', '/v1/wait', {
      body,
      signal: stop,
    })
    if (place.ok) take({ events: [], position: place.value.after })
    return place.ok
  }
  const result = await ask<{ items: JournalEvent[] }>('GET', '/v1/events', {
    query: { ...query, after },
    signal: stop,
  })
  if (result.ok) take({ events: result.value.items, position: null })
  return result.ok
}

/** `heard`: the stream was open. `mute`: it broke before it spoke. `none`: the answer was no stream. */
type Heard = 'heard' | 'mute' | 'none'

async function streamOnce(
  query: Query,
  after: number | null,
  stop: AbortSignal,
  take: Take,
  state: Signal<Following>,
): Promise<Heard> {
  const line = new AbortController()
  const end = () => line.abort()
  const onHidden = () => document.hidden && end()
  stop.addEventListener('abort', end)
  document.addEventListener('visibilitychange', onHidden)
  let timer = window.setTimeout(end, silent_ms_max)
  let heard: Heard = 'mute'
  try {
    const response = await fetch(base + withQuery('/v1/events', query), {
      headers: {
        authorization: `Bearer ${admin_key.peek()}`,
        accept: 'text/event-stream',
        ...(after !== null && { 'last-event-id': String(after) }),
      },
      signal: line.signal,
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
    })
    const is_stream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (!response.ok || !is_stream || !response.body) {
      end()
      return response.status >= 500 || response.status === 429 ? 'mute' : 'none'
    }
    for await (const piece of piecesOf(response.body)) {
      clearTimeout(timer)
      timer = window.setTimeout(end, silent_ms_max)
      heard = 'heard'
      state.value = 'live'
      take(piece)
    }
  } catch {
    // A stream ends in many ways, and every one of them is resumed.
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', end)
    document.removeEventListener('visibilitychange', onHidden)
  }
  return heard
}

/** The events of each piece that arrives; a comment is a piece without one. The first piece says where the stream begins. */
async function* piecesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Piece> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split(/\r?\n\r?\n/)
    rest = blocks.pop()!
    yield { events: blocks.flatMap(eventIn), position: positionIn(blocks) }
  }
}

function positionIn(blocks: readonly string[]): number | null {
  const [, digits] = /^id: ?(\d+)$/m.exec(blocks[0] ?? '') ?? []
  return digits === undefined ? null : Number(digits)
}

/** The data of a block of lines, as in the HTML standard, 9.2.6. */
function eventIn(block: string): JournalEvent[] {
  const data = block
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
  if (data.length === 0) return []
  try {
    const event = JSON.parse(data.join('\n')) as Partial<JournalEvent>
    return typeof event.seq === 'number' ? [event as JournalEvent] : []
  } catch {
    return []
  }
}
