// Every page of the service: what is served beside the API.

import type { Page } from '../http/pages.ts'
import { consolePages, type SignUpOffer } from './console.ts'
import { docsPages } from './docs.ts'
import { entryPages } from './entry.ts'
import { mailPages } from './mail.ts'
import { mcpPage } from './mcp.ts'

/** The material of pages. */
export interface PageSources {
  /** The OpenAPI document as /openapi.json answers it. */
  openapi_text: () => string
  /** Without a slash at its end. */
  public_url: () => string
  version: string
  cors_origins: readonly string[]
  /** Null while sign-up is closed. */
  sign_up: SignUpOffer | null
  /** The time of the service can be moved. */
  test_clock: boolean
}

export function pagesOf(sources: PageSources): Page[] {
  const { public_url } = sources
  return [
    ...entryPages(public_url),
    ...docsPages(public_url),
    mcpPage(sources),
    ...mailPages(),
    ...consolePages(sources),
  ]
}
