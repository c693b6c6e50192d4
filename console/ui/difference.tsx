// The difference of two JSON texts, line by line. Equal lines away from any change are folded; changed lines are never,
// but come a part at a time.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { type DifferenceLine, difference, partsOf } from '../text/difference.ts'
import { count, counted, shown } from '../text/words.ts'
import { Button, ScrollBox } from './basics.tsx'

interface DifferenceProps {
  before: string
  after: string
  /** The texts, in words: "of the change". */
  what: string
}

/** Changed lines shown at once, and how many more of them, or of equal ones, a click adds. */
const lines_a_time = 1_000

export function Difference({ before, after, what }: DifferenceProps) {
  const lines = useMemo(() => (before === after ? [] : difference(before, after)), [before, after])
  const { place, limit, more } = useMore(lines_a_time, 'ins, del')
  const parts = useMemo(() => partsOf(lines.slice(0, endOf(lines, limit))), [lines, limit])
  if (before === after) return null
  const changed = lines.filter(isChanged).length
  if (changed === 0) return <p class="muted">Only white space differs: this counts as unchanged.</p>
  const left = changed - limit
  return (
    <>
      {left > 0 && (
        <p class="notice">
          There is more: these are the first {count(limit)} of {count(changed)} changed lines. A button below
          them shows the others.
        </p>
      )}
      <ScrollBox kind="difference" label={`Difference ${what}`} {...{ place }}>
        {parts.map(({ is_folded, lines: part }, i) =>
          is_folded ? <Folded key={i} lines={part} /> : <Lines key={i} lines={part} />,
        )}
        {left > 0 && (
          <Button
            text={`Show more: ${counted(left, 'changed line')} ${left === 1 ? 'is' : 'are'} left`}
            kind="quiet"
            onClick={more}
          />
        )}
      </ScrollBox>
    </>
  )
}

function isChanged({ kind }: DifferenceLine): boolean {
  return kind !== 'same'
}

/** Where the lines end that are shown: before the first changed one past the limit. */
function endOf(lines: readonly DifferenceLine[], limit: number): number {
  let seen = 0
  const end = lines.findIndex((line) => {
    seen += isChanged(line) ? 1 : 0
    return seen > limit
  })
  return end === -1 ? lines.length : end
}

/** A limit that a click raises. The button then moves, or is gone: the first of the new lines gets the focus. */
function useMore(at_first: number, selector: string) {
  const limit = useSignal(at_first)
  const before = useRef(at_first)
  const place = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    if (before.current === limit.value) return
    const line = place.current?.querySelectorAll<HTMLElement>(selector)[before.current]
    before.current = limit.value
    if (!line) return
    line.tabIndex = -1
    line.focus()
  }, [limit.value])
  const more = () => {
    limit.value += lines_a_time
  }
  return { place, limit: limit.value, more }
}

function Folded({ lines }: { lines: readonly DifferenceLine[] }) {
  const { place, limit, more } = useMore(0, '.difference-line')
  const left = lines.length - limit
  const part = left > lines_a_time ? `${count(lines_a_time)} of ` : ''
  return (
    <span ref={place} class="difference-folded">
      <Lines lines={lines.slice(0, limit)} />
      {left > 0 && <Button text={`Show ${part}${counted(left, 'equal line')}`} kind="quiet" onClick={more} />}
    </span>
  )
}

/** Lines with a sign each, so that it is read without colours. */
function Lines({ lines }: { lines: readonly DifferenceLine[] }) {
  return (
    <>
      {lines.map(({ kind, text }, i) => {
        if (kind === 'same') return <span key={i} class="difference-line">{`  ${shown(text)}`}</span>
        const line = `${kind === 'added' ? '+' : '−'} ${shown(text)}`
        return kind === 'added' ? (
          <ins key={i} class="difference-line">
            {line}
          </ins>
        ) : (
          <del key={i} class="difference-line">
            {line}
          </del>
        )
      })}
    </>
  )
}
