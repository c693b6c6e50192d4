// The progress of work that goes on in the service.

import { count } from '../text/words.ts'

interface ProgressProps {
  label: string
  done: number
  of: number
}

/** A bar, and the same in words. */
export function Progress({ label, done, of }: ProgressProps) {
  const share = of === 0 ? 1 : Math.min(1, done / of)
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={of}
      aria-valuenow={Math.min(done, of)}
      aria-valuetext={`${count(done)} of ${count(of)}`}
    >
      <div class="meter-bar" aria-hidden="true">
        <span style={{ transform: `scaleX(${share})` }} />
      </div>
      <p class="muted small digits" aria-hidden="true">
        {count(done)} of {count(of)}
      </p>
    </div>
  )
}
