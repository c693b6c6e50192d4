// The files of tests that ask a service, or a database, on both engines.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const asks_a_service = /\bforEach(Service|Database)\(/

/** All but those whose paths `except` matches. */
export function apiTests(except: RegExp): string[] {
  return [...new Bun.Glob('{src,test}/**/*.test.ts').scanSync(root)]
    .filter((file) => !except.test(file) && asks_a_service.test(readFileSync(join(root, file), 'utf8')))
    .toSorted()
}
