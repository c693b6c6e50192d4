// The process: memory, processor time and open files.

import { readdirSync, readFileSync } from 'node:fs'
import { counter, type Figure, type FigureValue, gauge, value } from './figure.ts'

export function processFigures(started_at_ms: number): Figure[] {
  const { user, system } = process.cpuUsage()
  return [
    gauge('process_resident_memory_bytes', 'Resident memory in bytes.', value(process.memoryUsage.rss())),
    counter(
      'process_cpu_seconds_total',
      'Processor time of user and system in seconds.',
      value((user + system) / 1_000_000),
    ),
    gauge('process_open_fds', 'Open file descriptors, of the process that has most.', openFiles(), 'max'),
    gauge('process_max_fds', 'File descriptors that a process may have open.', filesMax(), 'min'),
    gauge(
      'process_start_time_seconds',
      'When the process started, in seconds since the Unix epoch.',
      value(started_at_ms / 1_000),
      'min',
    ),
  ]
}

function openFiles(): FigureValue[] {
  return process.platform === 'linux' ? value(readdirSync('/proc/self/fd').length) : []
}

function filesMax(): FigureValue[] {
  if (process.platform !== 'linux') return []
  const soft = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return soft === undefined ? [] : value(Number(soft)) // absent: unlimited
}
