// Workers as processes: this command again, with a number, the port that was claimed, and a channel to this process.

import { ownCommand } from '../heap.ts'
import { type FromWorker, worker_variable } from './messages.ts'
import type { Start } from './supervisor.ts'

export function startOf(environment: Readonly<Record<string, string | undefined>>, port: number): Start {
  return (number, onMessage) => {
    const child = Bun.spawn(ownCommand(), {
      env: { ...environment, PORT: String(port), [worker_variable]: String(number) },
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: (message) => onMessage(message as FromWorker),
      serialization: 'json',
    })
    return {
      send(message) {
        try {
          child.send(message)
        } catch {
          // It has just ended, which is noticed by itself.
        }
      },
      kill: () => child.kill('SIGKILL'),
      exited: child.exited,
    }
  }
}
