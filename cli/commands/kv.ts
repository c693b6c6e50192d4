// waystation kv

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { usageError } from '../failures.ts'
import { requiredValueOf, seconds, type ValueOptions, wholeNumber } from '../input.ts'
import { visibleJson } from '../text.ts'
import { group, type ListOptions, leaf, listing, printList } from '../tree.ts'

export const columns = ['key', 'version', 'expires_at', 'updated_at']

export function addKv(program: Command, cli: Cli): void {
  const kv = group(program, 'kv', 'Values by namespace and key', [
    `waystation kv put state last-run '{"rows": 42}'`,
    'waystation kv get state last-run',
  ])
  leaf(kv, 'get <namespace> <key>', 'Print a value: the exact JSON text that was put', [
    'waystation kv get state last-run',
    'waystation kv get state greeting --string',
    'waystation kv get state last-run --json   # with its version and times',
  ])
    .option('--string', 'print a string as its text, without quotes')
    .option('--if-version <n>', 'only this version; another is a conflict', wholeNumber)
    .action(async (namespace: string, key: string, options: { string?: boolean; ifVersion?: number }) => {
      const { ifVersion: if_version } = options
      const client = cli.client()
      if (cli.out.json) return cli.out.value(await client.kv.get(namespace, key, { if_version }))
      const { value } = await client.kv.getText(namespace, key, { if_version })
      printValue(cli, value, options.string ?? false)
    })
  leaf(kv, 'put <namespace> <key> [value]', 'Put a value: JSON from the argument, a file or standard input', [
    `waystation kv put state last-run '{"rows": 42}' --ttl 7d`,
    'waystation kv put state greeting "good morning" --string',
    'waystation kv put state report --file report.json --if-version 3',
    'date +%s | waystation kv put state lock --if-absent',
  ])
    .option('--file <path>', 'read the value from a file; - is standard input')
    .option('--string', 'take the value as text instead of JSON')
    .option('--ttl <duration>', 'it expires after this; without it never', seconds)
    .option('--if-version <n>', 'only over this version', wholeNumber)
    .option('--if-absent', 'only when there is no such key')
    .action(async (namespace: string, key: string, text: string | undefined, options: PutOptions) => {
      const { ttl: ttl_seconds, ifVersion, ifAbsent } = options
      if (ifAbsent && ifVersion !== undefined)
        throw usageError('--if-absent and --if-version exclude each other.')
      const cas_version = ifAbsent ? 0 : ifVersion
      const value = await requiredValueOf(cli, text, options)
      cli.out.record(await cli.client().kv.put(namespace, key, value, { ttl_seconds, cas_version }))
    })
  leaf(kv, 'delete <namespace> <key>', 'Delete a key', ['waystation kv delete state last-run --if-version 3'])
    .option('--if-version <n>', 'only this version', wholeNumber)
    .action(async (namespace: string, key: string, { ifVersion: if_version }: { ifVersion?: number }) => {
      await cli.client().kv.delete(namespace, key, { if_version })
      cli.out.done(`deleted ${namespace} ${key}`, { namespace, key, deleted: true })
    })
  listing(
    leaf(kv, 'list <namespace>', 'List the keys of a namespace, in their order', [
      'waystation kv list state --prefix user/ --all',
    ]),
  )
    .option('--prefix <text>', 'only keys that begin with it')
    .action(async (namespace: string, { limit, cursor, prefix, all }: ListOptions & { prefix?: string }) => {
      const keys = cli.client().kv.list(namespace, { limit, cursor, prefix })
      await printList(cli, keys, columns, { all: all ?? false })
    })
}

/** In a pipe as it is; on a terminal nothing of it is obeyed. */
export function printValue(cli: Cli, text: string, as_string: boolean): void {
  const shown: unknown = as_string ? JSON.parse(text) : text
  if (typeof shown !== 'string') throw usageError('The value is no string.', 'Get it without --string.')
  cli.out.text(cli.out.on_terminal ? visibleLines(shown) : shown)
}

function visibleLines(text: string): string {
  return visibleJson(text.replace(/\r(?!\n)/g, '\\r'))
}

interface PutOptions extends ValueOptions {
  ttl?: number
  ifVersion?: number
  ifAbsent?: boolean
}
