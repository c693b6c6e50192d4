// Meters of what is used, and the quotas of a tenant.

import type { Quota, Tenant } from '../../sdk/src/types.ts'
import type { Loaded } from '../api/load.ts'
import { byteCount, count, shown } from '../text/words.ts'
import { Card, LoadedView } from './page.tsx'

interface MeterProps {
  label: string
  used: number
  /** Null without a limit. */
  limit: number | null
  /** The form of numbers. */
  format?: (value: number) => string
}

export function Meter({ label, used, limit, format = count }: MeterProps) {
  const share = limit === null ? 0 : limit === 0 ? 1 : Math.min(1, used / limit)
  const tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : undefined
  const most = limit === null ? 'no limit' : format(limit)
  return (
    <div class="meter">
      <div class="meter-head bar digits">
        <span>{label}</span>
        <span class="digits">
          {format(used)} <span class="muted">/ {most}</span>
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw <meter> in different ways */}
      <div
        class="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={limit ?? Math.max(used, 1)}
        aria-valuenow={limit === null ? used : Math.min(used, limit)}
        aria-valuetext={`${format(used)} of ${most}`}
      >
        <span data-tone={tone} style={{ transform: `scaleX(${share})` }} />
      </div>
    </div>
  )
}

/** Where the name of the quota is not its title. */
const quota_titles: Partial<Record<keyof Quota, string>> = {
  kv_keys: 'Keys in the store',
  dlq_items: 'Dead letters',
  api_calls_per_month: 'Calls of /api this month',
  storage_bytes: 'Stored data',
}

/** `active_schedules` as `Active schedules`. */
function titleOf(name: string): string {
  return shown(name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' '))
}

export function Quotas({ loaded }: { loaded: Loaded<Tenant> }) {
  return (
    <Card title="Quotas">
      <LoadedView {...{ loaded }} what="quotas" lines={8}>
        {({ quota, plan }) => (
          <div class="meters stack">
            {Object.entries(quota).map(([name, { used, limit }]) => (
              <Meter
                key={name}
                label={quota_titles[name as keyof Quota] ?? titleOf(name)}
                {...{ used, limit }}
                format={name === 'storage_bytes' ? byteCount : count}
              />
            ))}
            <p class="muted small">Plan: {shown(plan)}. The operator of the service changes it.</p>
          </div>
        )}
      </LoadedView>
    </Card>
  )
}
