// `npm run test:quick`: SQLite alone, no browser, no service, client or package as a process of its own, and no proof that
// plants faults, cuts the power, takes a million rows or runs the whole conformance suite.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const quick_variable = 'WAYSTATION_TEST_QUICK'
export const quick = process.env[quick_variable] === '1'

const root = join(import.meta.dir, '../..')
const support = 'test/support'

/** A test file that imports one of these is not in the quick run: they start a browser or a service, or plant faults. */
const slow_support = [
  ...['chromium.ts', 'server-process.ts', 'job-process.ts', 'crash-load.ts', 'checkout.ts'],
  ...['conformance-proxy.ts', 'million.ts'],
]

/** These start the service or a client of it by themselves, pack and install what they test, cut the power, or send 7,000 requests. */
const slow_files = [
  ...[
    'src/main.test.ts',
    'test/cli.test.ts',
    'test/cli-proxy.test.ts',
    'test/cli-package.test.ts',
    'test/cli-binary.test.ts',
  ],
  ...['test/mcp-stdio.test.ts', 'test/mcp-story.test.ts', 'test/mcp-example.test.ts'],
  'test/sdk-package.test.ts',
  ...['test/conformance.test.ts', 'test/conformance-package.test.ts', 'test/power-cut.test.ts'],
  'src/seal/tamper.test.ts',
]

/** The test files of the quick run. Throws for a name above that is not a file. */
export function quickFiles(): string[] {
  const named = [...slow_support.map((name) => `${support}/${name}`), ...slow_files]
  const gone = named.filter((file) => !existsSync(join(root, file)))
  if (gone.length > 0) throw new Error(`The quick run leaves out what is not there: ${gone.join(', ')}`)
  return testFiles().filter((file) => !slow_files.includes(file) && !importsSlow(file))
}

function testFiles(): string[] {
  return ['src', 'test', 'sdk', 'cli', 'mcp']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    )
    .filter((file) => file.endsWith('.test.ts'))
}

function importsSlow(file: string): boolean {
  const text = readFileSync(join(root, file), 'utf8')
  return slow_support.some((name) => text.includes(`support/${name}'`))
}

/** Throws in the quick run: before a thing is started that it leaves out. */
export function notInQuickRun(thing: string): void {
  if (quick) throw new Error(`The quick run starts no ${thing}: its filter is in ${support}/quick.ts`)
}
