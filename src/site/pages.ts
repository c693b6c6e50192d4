// Every page of the service: what is served beside the API.

import type { Page } from '../http/pages.ts'
import { consolePages } from './console.ts'
import { docsPages } from './docs.ts'
import { mcpPage } from './mcp.ts'

/** The material of pages. */
export interface PageSources {
  /** The OpenAPI document as /openapi.json answers it. */
  openapi_text: () => string
  /** Without a slash at its end. */
  public_url: () => string
  version: string
  cors_origins: readonly string[]
}

export function pagesOf(sources: PageSources): Page[] {
  return [...docsPages(sources.public_url), mcpPage(sources), ...consolePages(sources.public_url)]
}
