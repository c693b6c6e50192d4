#!/usr/bin/env node
// The command: options in, report out.

import { chapters } from './chapters.ts'
import { type Options, readOptions, UsageError, usage } from './options.ts'
import { listOf, textOf } from './report.ts'
import { type Report, run } from './runner.ts'

const exit = { passed: 0, failed: 1, usage: 2, unreachable: 3 } as const

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2), process.env)
    if (!options || options.list) {
      process.stdout.write(options ? listOf(chapters, options) : usage)
      return exit.passed
    }
    return await judged(options)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n\n${usage}`)
    return exit.usage
  }
}

async function judged(options: Options): Promise<number> {
  const report = await made(options)
  if (!report) return exit.unreachable
  process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report))
  const faults = report.failed + (options.strict ? report.not_run : 0)
  // A run in which no check was possible shows nothing.
  return faults === 0 && report.passed > 0 ? exit.passed : exit.failed
}

async function made(options: Options): Promise<Report | null> {
  try {
    return await run(chapters, options, progressOn(process.stderr, options))
  } catch (error) {
    if (error instanceof UsageError) throw error
    process.stderr.write(`${options.url}: ${(error as Error).message}\n`)
    return null
  }
}

/** A count on a terminal, nothing elsewhere. */
function progressOn(stream: NodeJS.WriteStream, { json }: Options): () => void {
  let done = 0
  return () => {
    done += 1
    if (stream.isTTY && !json) stream.write(`\r${done} checks done\r`)
  }
}
