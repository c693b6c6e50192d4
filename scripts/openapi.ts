// Writes openapi.json from the routes. A test fails when the file in git is not this.

import { openapiOf } from '../src/contract/openapi.ts'
import { routes, tags } from '../src/features.ts'
import { version } from '../src/version.ts'

const documented_url = 'http://127.0.0.1:8420'

/** The text of openapi.json. */
export function openapiText(): string {
  return `${JSON.stringify(openapiOf(routes, tags, version, documented_url), null, 2)}\n`
}

if (import.meta.main) await Bun.write(new URL('../openapi.json', import.meta.url), openapiText())
