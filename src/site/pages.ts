// Every page of the service: what is served beside the API.

import type { Page } from '../http/pages.ts'
import { type ConsoleFacts, consolePages } from './console.ts'
import { docsPages } from './docs.ts'
import { entryPages } from './entry.ts'
import { mailPages } from './mail.ts'
import { type McpSources, mcpPage } from './mcp.ts'

export function pagesOf(sources: ConsoleFacts & McpSources): Page[] {
  const { public_url } = sources
  return [
    ...entryPages(public_url),
    ...docsPages(public_url),
    mcpPage(sources),
    ...mailPages(),
    ...consolePages(sources),
  ]
}
