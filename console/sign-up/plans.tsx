// The choice of a plan, with what each holds.

import { useId } from 'preact/hooks'
import { shown } from '../text/words.ts'
import { offer, quotasOf } from './offer.ts'

interface PlanChoiceProps {
  value: string
  error: string | undefined
  onInput: (plan: string) => void
}

/** A plan for those who run the service for themselves is the one without quotas. */
export function PlanChoice({ value, error, onInput }: PlanChoiceProps) {
  const id = useId()
  const plans = Object.entries(offer?.plans ?? {})
  return (
    <fieldset class="plans">
      <legend>Plan</legend>
      {plans.map(([plan, limits], at) => {
        const quotas = quotasOf(limits)
        return (
          <label key={plan} class="plan">
            <input
              type="radio"
              name="plan"
              value={plan}
              checked={value === plan}
              aria-labelledby={`${id}-${at}`}
              aria-describedby={`${id}-${at}-quotas`}
              onChange={() => onInput(plan)}
            />
            <span>
              <span id={`${id}-${at}`} class="plan-name">
                {shown(plan)}
              </span>
              <span id={`${id}-${at}-quotas`} class="muted small">
                {quotas.length === 0 && 'No quotas: for those who run the service for themselves.'}
                {quotas.map((text, i) => (
                  <span key={text}>
                    <span class="plan-quota">
                      {text}
                      {i < quotas.length - 1 && ','}
                    </span>{' '}
                  </span>
                ))}
              </span>
            </span>
          </label>
        )
      })}
      {error && (
        <p class="field-error" role="alert">
          This plan {error}
        </p>
      )}
      <p class="muted small">
        Only calls for inboxes and rate limits, under /api, count as API calls. The operator of the service
        can change the plan later.
      </p>
    </fieldset>
  )
}
