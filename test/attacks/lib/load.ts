// Loads, each in a process of its own that gives way to the service.

import { join } from 'node:path'
import { giveWay, startChild } from './children.ts'
import type { LoadResult, LoadSpec } from './load-process.ts'

export async function runLoad(spec: LoadSpec): Promise<LoadResult> {
  const told = Promise.withResolvers<LoadResult>()
  const child = startChild(giveWay([process.execPath, join(import.meta.dir, 'load-process.ts')]), {
    onMessage: (result) => told.resolve(result as LoadResult),
  })
  child.send(spec)
  void child.exited.then((status) => told.reject(new Error(`the load ended with ${status}`)))
  return told.promise
}

/** `12770 requests, 200: 12000, closed: 770` */
export function shown({ requests, answers }: LoadResult): string {
  const counts = Object.entries(answers).map(([what, count]) => `${what}: ${count}`)
  return [`${requests} requests`, ...counts].join(', ')
}
