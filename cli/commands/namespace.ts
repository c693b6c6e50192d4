// waystation namespace: what agents keep, for the operator to read.

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { group, type ListOptions, leaf, listing, printList } from '../tree.ts'
import { columns as key_columns, printValue } from './kv.ts'

const columns = ['namespace', 'agent_id']

export function addNamespace(program: Command, cli: Cli): void {
  const namespace = group(program, 'namespace', 'Keys and values of all agents, to read with the admin key', [
    'waystation namespace list',
    'waystation namespace get state last-run',
  ])
  listing(
    leaf(namespace, 'list', 'List the namespaces that hold a key, those of single agents included', [
      'waystation namespace list --all',
    ]),
  ).action(async ({ limit, cursor, all }: ListOptions) => {
    await printList(cli, cli.client().namespaces.list({ limit, cursor }), columns, { all: all ?? false })
  })
  listing(
    leaf(namespace, 'keys <namespace>', 'List the keys of a namespace, in their order', [
      'waystation namespace keys state --prefix user/ --all',
    ]),
  )
    .option('--prefix <text>', 'only keys that begin with it')
    .action(async (name: string, { limit, cursor, prefix, all }: ListOptions & { prefix?: string }) => {
      const keys = cli.client().namespaces.keys(name, { limit, cursor, prefix })
      await printList(cli, keys, key_columns, { all: all ?? false })
    })
  leaf(namespace, 'get <namespace> <key>', 'Print a value: the exact JSON text that was put', [
    'waystation namespace get state last-run',
    'waystation namespace get state last-run --json   # with its version and times',
  ])
    .option('--string', 'print a string as its text, without quotes')
    .action(async (name: string, key: string, options: { string?: boolean }) => {
      const { namespaces } = cli.client()
      if (cli.out.json) return cli.out.value(await namespaces.get(name, key))
      printValue(cli, (await namespaces.getText(name, key)).value, options.string ?? false)
    })
}
