// The parts of the service that say what it offers: plans of a sign-up, and the OpenAPI document.

import type { Config } from '../config.ts'
import { openapiOf } from '../contract/openapi.ts'
import { routes, tags } from '../features.ts'
import type { SignUpOffer } from '../site/console.ts'
import { version } from '../version.ts'

export function signUpOffer({ signup_open, default_plan, plans_open, plans }: Config): SignUpOffer | null {
  if (!signup_open) return null
  return { default_plan, plans: Object.fromEntries(plans_open.map((plan) => [plan, plans[plan]!])) }
}

/** The OpenAPI document as text, made once for each address of the service. */
export function openapiTexts(): (public_url: string) => string {
  const made = new Map<string, string>()
  return (public_url) => {
    const text = made.get(public_url) ?? JSON.stringify(openapiOf(routes, tags, version, public_url))
    made.set(public_url, text)
    return text
  }
}
