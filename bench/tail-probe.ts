// Loaded into a node before its code: notes when its event loop came late, for bench/tail.ts.

import { appendFileSync } from 'node:fs'

const every_ms = 10
const late_ms = 40

const file = process.env.TAIL_PROBE
let due = performance.now() + every_ms
if (file) {
  const timer = setInterval(() => {
    const now = performance.now()
    const late = now - due
    if (late >= late_ms) {
      appendFileSync(file, `${JSON.stringify({ until: Date.now(), late_ms: Math.round(late) })}\n`)
    }
    due = now + every_ms
  }, every_ms)
  timer.unref()
}
