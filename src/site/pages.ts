// Every page of the service: what is served beside the API.

import type { Page } from '../http/pages.ts'
import { consolePages } from './console.ts'

/** What pages are made of. */
export interface PageSources {
  /** The OpenAPI document as /openapi.json answers it. */
  openapi_text: () => string
  /** Without a slash at its end. */
  public_url: () => string
  version: string
}

export function pagesOf({ public_url }: PageSources): Page[] {
  return [...consolePages(public_url)]
}
