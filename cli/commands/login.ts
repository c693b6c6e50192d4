// waystation login, logout, profiles

import type { Command } from 'commander'
import { type Cli, checkedUrl } from '../cli.ts'
import { usageError } from '../failures.ts'
import { stdinText } from '../input.ts'
import { checkedName, kindOf, masked } from '../profiles.ts'
import { promptedSecret } from '../prompts.ts'
import { group, leaf } from '../tree.ts'

const columns = ['name', 'current', 'kind', 'url', 'key', 'tenant_id']

export function addLogin(program: Command, cli: Cli): void {
  leaf(program, 'login [profile]', 'Keep a key as a profile, and use it from now on', [
    'waystation login worker   # asks for the key',
    'waystation login worker --url https://waystation.example.com < key.txt',
  ])
    .option('--tenant <tenant_id>', 'whose admin key it is, for commands without an id')
    .option('--no-check', 'keep it without asking the service')
    .action(
      async (
        given: string | undefined,
        { tenant: tenant_id, check }: { tenant?: string; check: boolean },
      ) => {
        const name = checkedName(given ?? 'default')
        const url = checkedUrl(loginUrl(cli, name))
        const key = await readKey(cli, name, url)
        if (check) await mustBeAccepted(cli, url, key)
        if (travelsOpenly(url)) cli.out.note('The address is plain http: the key travels unencrypted.')
        cli.profiles.save(name, { url, key, tenant_id })
        cli.out.done(`profile ${name} is in use for ${url}`, { name, url, kind: kindOf(key), current: true })
      },
    )
  leaf(program, 'logout [profile]', 'Forget a profile and its key; default the current one', [
    'waystation logout worker',
  ]).action(async (given?: string) => {
    const name = given ?? cli.profiles.list().current
    if (!name) throw usageError('No profile is in use.', 'waystation profiles shows those there are.')
    cli.profiles.remove(name)
    cli.out.done(`profile ${name} is gone; its key still works until it is rotated`, { name, removed: true })
  })
  const profiles = group(program, 'profiles', 'List the profiles, with their keys masked', [
    'waystation profiles',
    'waystation profiles use worker',
  ]).action(async () => {
    const { current, profiles } = cli.profiles.list()
    const items = Object.entries(profiles).map(([name, { url, key, tenant_id }]) => {
      const is_current = name === current
      return {
        name,
        current: is_current,
        kind: kindOf(key),
        url,
        key: masked(key),
        tenant_id: tenant_id ?? null,
      }
    })
    if (cli.out.json) return cli.out.value({ items })
    cli.out.table(items, columns)
    if (items.length === 0) cli.out.note('There are none; waystation login keeps one.')
  })
  leaf(profiles, 'use <profile>', 'Use this profile from now on', ['waystation profiles use worker']).action(
    async (name: string) => {
      cli.profiles.use(name)
      cli.out.done(`profile ${name} is in use`, { name, current: true })
    },
  )
}

/** What was said for this login, else what the profile had, else what is in use. */
function loginUrl(cli: Cli, name: string): string {
  const { profiles } = cli.profiles.list()
  if (cli.has_url || !Object.hasOwn(profiles, name)) return cli.connection.url
  return profiles[name]!.url
}

async function readKey(cli: Cli, name: string, url: string): Promise<string> {
  const { stdin } = cli.world
  const text = stdin.isTTY
    ? await promptedSecret(cli, `Key of profile ${name} at ${url}`)
    : await stdinText(cli, 'There is no key on standard input.')
  const key = text.trim()
  if (/^[\x21-\x7e]{8,512}$/.test(key)) return key
  throw usageError(
    'That is no key.',
    'A key is one word such as svc_agt_…, on standard input or at the prompt.',
  )
}

/** Throws UNAUTHORIZED. What an approval key and the cron secret may do has effects, so they are not tried. */
async function mustBeAccepted(cli: Cli, url: string, key: string): Promise<void> {
  if (['admin', 'agent'].includes(kindOf(key))) await cli.client({ url, key }).audit.list({ limit: 1 }).page()
  else cli.out.note('The key is kept unchecked: trying it would have effects.')
}

function travelsOpenly(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && !/^(localhost|127\..*|\[::1\])$/.test(hostname)
}
