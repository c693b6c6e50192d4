// A step of the browser's history, and what it keeps for a reload and for the way back.

export interface Step {
  /** The step before shows the list of this record. */
  opened?: true
  /** The scroll position of the page. */
  top_px?: number
  /** The scroll position of a list that scrolls by itself. */
  list_px?: number
  /** The pages that lists have loaded, by their names. */
  pages?: Record<string, number>
}

export function step(): Step {
  return (history.state as Step | null) ?? {}
}

export function keep(change: Step): void {
  history.replaceState({ ...step(), ...change }, '')
}

/** The position is noted this long after the last scroll: browsers limit how often a step may change. */
const noted_after_ms = 200

/** The end of a list may be lower than before: the last "Show more" leaves a line behind. */
const end_px = 100

/** After a reload: waits until the page is as high again, and scrolls there, unless the reader acts first. */
export function keepPosition(): void {
  let timer = 0
  const note = () => {
    clearTimeout(timer)
    timer = window.setTimeout(() => {
      const list = document.querySelector('.window .table-scroll')
      keep({ top_px: scrollY, ...(list && { list_px: list.scrollTop }) })
    }, noted_after_ms)
  }
  addEventListener('scroll', note, { passive: true, capture: true })
  const { top_px = 0 } = step()
  if (top_px === 0) return
  const acts = ['wheel', 'touchstart', 'pointerdown', 'keydown']
  const stop = () => {
    observer.disconnect()
    for (const act of acts) removeEventListener(act, stop)
  }
  const observer = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight - innerHeight < top_px - end_px) return
    scrollTo(0, top_px)
    stop()
  })
  observer.observe(document.body)
  for (const act of acts) addEventListener(act, stop, { passive: true })
}
