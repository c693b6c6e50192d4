// waystation kv get, namespace get: a value as it was put.

import type { Cli } from '../cli.ts'
import { usageError } from '../failures.ts'
import type { Override } from '../spec.ts'

const as_text = { flag: '--string', about: 'print a string as its text, without quotes' }

export const kvGet: Override = {
  options: [as_text],
  async run(cli, { namespace, key, if_version, string }) {
    const { kv } = cli.client()
    if (cli.out.json) return cli.out.value(await kv.get(namespace, key, { if_version }))
    printValue(cli, (await kv.getText(namespace, key, { if_version })).value, string)
  },
}

export const namespaceGet: Override = {
  options: [as_text],
  async run(cli, { namespace, key, string }) {
    const { namespaces } = cli.client()
    if (cli.out.json) return cli.out.value(await namespaces.get(namespace, key))
    printValue(cli, (await namespaces.getText(namespace, key)).value, string)
  },
}

function printValue(cli: Cli, text: string, as_string = false): void {
  const shown: unknown = as_string ? JSON.parse(text) : text
  if (typeof shown !== 'string') throw usageError('The value is not a string.', 'Get it without --string.')
  cli.out.stored(shown)
}
