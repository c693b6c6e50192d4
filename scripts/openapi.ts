// Writes openapi.json from the routes. A test fails when the file in git is not this.

import { openapiOf } from '../src/contract/openapi.ts'
import { routes } from '../src/routes.ts'
import { version } from '../src/version.ts'

export const documented_url = 'http://127.0.0.1:8420'

const text = `${JSON.stringify(openapiOf(routes, version, documented_url), null, 2)}\n`
await Bun.write(new URL('../openapi.json', import.meta.url), text)
