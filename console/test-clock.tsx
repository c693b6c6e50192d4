// The time of a service with a test clock, below the name of the tenant. Every page counts from it.

import { useEffect } from 'preact/hooks'
import type { TestClock } from '../sdk/src/types.ts'
import { useGet } from './api/load.ts'
import { followTime, has_test_clock } from './text/time.ts'
import { Badge } from './ui/basics.tsx'

const every_ms = 5_000

export function TestClockBadge() {
  return has_test_clock ? <Shown /> : null
}

function Shown() {
  const { value } = useGet<TestClock>('/v1/clock', {}, { every_ms })
  useEffect(() => {
    if (value) followTime(value.now)
  }, [value?.now])
  return (
    <p class="tenant bar" data-wrap>
      <Badge tone="warn">test clock</Badge>
      {value && <span class="small digits">{value.now.slice(0, 16).replace('T', ' ')} UTC</span>}
    </p>
  )
}
