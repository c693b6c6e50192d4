// Operations on many dead letters: those under way above the list, and all of the last days.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { pathOf } from '../api/address.ts'
import { type List, usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Badge } from '../ui/basics.tsx'
import { TableList } from '../ui/list.tsx'
import { Empty } from '../ui/page.tsx'
import { Progress } from '../ui/progress.tsx'
import { type Column, linkColumn, timeColumn } from '../ui/table.tsx'
import { letters, verb_titles } from './letter.ts'
import type { Operation } from './shapes.ts'

/** While one is under way, and otherwise. */
const every_ms = { running: 2_000, ended: 10_000 }
const operations_a_page = 20

export function useOperations(): List<Operation> {
  const running = useSignal(false)
  const list = usePages<Operation>(
    '/v1/dlq/operations',
    { limit: operations_a_page },
    { every_ms: running.value ? every_ms.running : every_ms.ended },
  )
  useEffect(() => {
    running.value = list.value?.some(({ status }) => status === 'running') ?? false
  }, [list.value])
  return list
}

/** `Redrive of 40 dead letters` */
export function operationTitle({ verb, matched }: Operation): string {
  return `${verb_titles[verb]} of ${letters(matched)}`
}

/** The number of letters that had their turn. */
export function handled({ done, failed, skipped }: Operation): number {
  return done + failed + skipped
}

/** Operations that are under way: they are found here after a reload, and by others. */
export function RunningOperations({ operations, query, current }: OperationsProps) {
  const running = (operations.value ?? []).filter(({ id, status }) => status === 'running' && id !== current)
  if (running.length === 0) return null
  return (
    <ul class="running" aria-label="Operations under way">
      {running.map((operation) => (
        <li key={operation.id} class="card">
          <a href={to(pathOf('/console/dlq', operation.id), { status: query })}>
            {operationTitle(operation)}
          </a>
          <Progress label={operationTitle(operation)} done={handled(operation)} of={operation.matched} />
        </li>
      ))}
    </ul>
  )
}

interface OperationsProps {
  operations: List<Operation>
  query: string | undefined
  current: string | undefined
}

export function Operations({ operations: list, query, current }: OperationsProps) {
  const columns: Column<Operation>[] = [
    linkColumn('Operation', (row) => [
      to(pathOf('/console/dlq', row.id), { status: query }),
      operationTitle(row),
    ]),
    { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
    { title: 'Done', number: true, wide: true, cell: ({ done }) => count(done) },
    { title: 'Skipped', number: true, wide: true, cell: ({ skipped }) => count(skipped) },
    { title: 'Failed', number: true, wide: true, cell: (row) => count(row.failed) },
    timeColumn('Began', ({ created_at }) => created_at),
  ]
  return (
    <TableList
      what="operations"
      empty={
        <Empty title="No operations">
          Select dead letters in a list to redrive or discard many at once. What was done is kept here for 7
          days.
        </Empty>
      }
      caption="Operations on dead letters"
      id={({ id }) => id}
      {...{ list, columns, current }}
    />
  )
}
