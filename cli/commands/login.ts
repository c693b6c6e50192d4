// waystation login, logout, profiles

import { type Cli, checkedUrl } from '../cli.ts'
import { usageError } from '../failures.ts'
import { stdinText } from '../input.ts'
import { checkedName, described, kindOf, masked } from '../profiles.ts'
import { promptedSecret } from '../prompts.ts'
import type { OwnCommand } from '../spec.ts'

const columns = ['name', 'current', 'kind', 'url', 'key', 'tenant_id']

export const login: OwnCommand = {
  usage: 'login [profile]',
  about: 'Keep a key as a profile, and use it from now on',
  examples: [
    'waystation login worker   # asks for the key',
    'waystation login worker --url https://waystation.example.com < key.txt',
  ],
  options: [
    { flag: '--tenant <tenant_id>', about: 'the tenant of the admin key, for commands without an id' },
    { flag: '--no-check', about: 'keep it without asking the service' },
  ],
  async run(cli, { profile, tenant: tenant_id, check }) {
    const name = checkedName(profile ?? 'default')
    const url = checkedUrl(loginUrl(cli, name))
    const key = await readKey(cli, name, url)
    if (check) await requireAccepted(cli, url, key)
    if (travelsOpenly(url)) cli.out.note('The address is plain http: the key travels unencrypted.')
    const gone = cli.profiles.save(name, { url, key, tenant_id })
    if (gone) cli.out.note(`It replaces the ${described(gone)}.`)
    cli.noteVariableBefore(name)
    const saved = { name, url, kind: kindOf(key), current: true, replaced: gone !== null }
    cli.out.done(`profile ${name} is in use for ${url}`, saved)
  },
}

export const logout: OwnCommand = {
  usage: 'logout [profile]',
  about: 'Remove a profile and its key; default the current one',
  examples: ['waystation logout worker'],
  run(cli, { profile }) {
    const name = profile ?? cli.profiles.list().current
    if (!name) throw usageError('No profile is in use.', 'waystation profiles lists them.')
    cli.profiles.remove(name)
    cli.out.done(`profile ${name} is removed; its key still works until it is rotated`, {
      name,
      removed: true,
    })
  },
}

export const profiles: OwnCommand = {
  usage: 'profiles',
  about: 'List the profiles, with their keys masked',
  examples: ['waystation profiles', 'waystation profiles use worker'],
  run(cli) {
    const { current, profiles } = cli.profiles.list()
    const items = Object.entries(profiles).map(([name, { url, key, tenant_id = null }]) => {
      return { name, current: name === current, kind: kindOf(key), url, key: masked(key), tenant_id }
    })
    if (cli.out.json) return cli.out.value({ items })
    cli.out.table(items, columns)
    if (items.length === 0) cli.out.note('There are none; waystation login keeps one.')
  },
}

export const profilesUse: OwnCommand = {
  usage: 'profiles use <profile>',
  about: 'Use this profile from now on',
  examples: ['waystation profiles use worker'],
  run(cli, { profile: name }) {
    cli.profiles.use(name)
    cli.noteVariableBefore(name)
    cli.out.done(`profile ${name} is in use`, { name, current: true })
  },
}

/** The address given for this login, else that of the profile, else the one in use. */
function loginUrl(cli: Cli, name: string): string {
  const { profiles } = cli.profiles.list()
  if (cli.has_url || !Object.hasOwn(profiles, name)) return cli.connection.url
  return profiles[name]!.url
}

async function readKey(cli: Cli, name: string, url: string): Promise<string> {
  const { stdin } = cli.io
  const { profiles } = cli.profiles.list()
  const instead = Object.hasOwn(profiles, name) ? `, instead of the ${described(profiles[name]!)}` : ''
  const text = stdin.isTTY
    ? await promptedSecret(cli, `Key of profile ${name} at ${url}${instead}`)
    : await stdinText(cli, 'There is no key on standard input.')
  const key = text.trim()
  if (/^[\x21-\x7e]{8,512}$/.test(key)) return key
  throw usageError(
    'That is not a key.',
    'A key is one word such as svc_agt_…, on standard input or at the prompt.',
  )
}

/** Throws UNAUTHORIZED. Approval keys and the cron secret are not tried: all that they may do has effects. */
async function requireAccepted(cli: Cli, url: string, key: string): Promise<void> {
  if (['admin', 'agent'].includes(kindOf(key))) await cli.client({ url, key }).audit.list({ limit: 1 }).page()
  else cli.out.note('The key is kept unchecked: trying it would have effects.')
}

function travelsOpenly(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && !/^(localhost|127\..*|\[::1\])$/.test(hostname)
}
