// The process around a command: its streams, and what ends it.

import { homedir } from 'node:os'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exit } from './failures.ts'
import { commandWords } from './hints.ts'
import { directHosts } from './proxies.ts'
import { run } from './run.ts'

let last_words = () => {}
const interrupt = () => {
  last_words()
  process.exit(exit.interrupted)
}
process.on('SIGINT', interrupt)

let verdict: number = exit.ok
let sayUnwritten: (why: string) => void = () => {}
// The reader of the output may close it early, as `head` does: the verdict of the command is still its exit code.
process.stdout.on('error', ({ code = 'unknown error' }: { code?: string }) => {
  if (code === 'EPIPE') process.exit(verdict)
  sayUnwritten(code)
  process.exit(exit.unexpected)
})
// Nobody reads remarks and errors any more; the exit code says it.
process.stderr.on('error', () => {})

process.env.no_proxy = directHosts(process.env)

// One executable of its own; otherwise Bun, started by the launcher.
const is_binary = !/^bun(\.exe)?$/.test(basename(process.argv0))

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  command: commandWords(is_binary ? process.argv0 : process.env.WAYSTATION_COMMAND || 'waystation'),
  program: is_binary
    ? [process.execPath]
    : ['node', fileURLToPath(new URL('waystation.mjs', import.meta.url))],
  platform: process.platform,
  home: home(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  now: Date.now,
  leaveSignals: () => void process.off('SIGINT', interrupt),
  onInterrupt: (tell) => {
    last_words = tell
  },
  onUnwritten: (tell) => {
    sayUnwritten = tell
  },
  decided: (code) => {
    verdict = code
  },
})

/** A container may have no variable HOME, and a user who is in no list of users. */
function home(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}
