// waystation effect claim, with an approval; effect wait.

import type { Waystation } from '../../sdk/src/index.ts'
import { exit, usageError } from '../failures.ts'
import type { Override, OwnCommand } from '../spec.ts'
import { shellWord } from '../text.ts'
import { wait_at_most, within } from '../within.ts'

const example = 'eff_01m7yjrz37hxnv52px0106nehd'

export const effectClaim: Override = {
  options: [
    { flag: '--ask <title>', about: 'ask a person first' },
    { flag: '--prompt <text>', about: 'with --ask: what the person needs to know' },
    { flag: '--editable', about: 'with --ask: the person may change the payload' },
    { flag: '--under <checkpoint>', about: 'under an approval of the same payload that has a use left' },
  ],
  async run(cli, { ask: title, prompt, editable, under: checkpoint_id, ...body }) {
    if (title === undefined && (prompt !== undefined || editable !== undefined))
      throw usageError('--prompt and --editable need --ask.')
    if (title !== undefined && checkpoint_id !== undefined)
      throw usageError('--ask and --under cannot be combined.')
    const asked = title !== undefined || checkpoint_id !== undefined
    const approval = { title, prompt, editable, checkpoint_id }
    const claim = { ...body, ...(asked && { approval }) } as Parameters<Waystation['effects']['claim']>[0]
    cli.out.record(await cli.client().effects.claim(claim))
  },
}

/** In which it may be started, or has happened. In others, also those of a newer service, nothing may follow. */
const open = ['ready', 'approved', 'succeeded']

export const effectWait: OwnCommand = {
  usage: 'effect wait <id>',
  about:
    'Wait until it is decided or has ended: exit code 0 when it may be started or has happened, 8 when not',
  examples: [
    `waystation effect wait ${example} && waystation effect start ${example}`,
    `waystation effect wait ${example} --for 10m   # exit code 7 when the time is up`,
  ],
  path: ['id'],
  options: [wait_at_most('it is')],
  async run(cli, { id, for: wait_seconds }) {
    const { effects } = cli.client()
    const next = `waystation effect wait ${shellWord(id)} continues the wait.`
    const wait = (signal?: AbortSignal) => effects.waitFor(id, { ...cli.retries, signal })
    const effect = await within(wait_seconds, 'Neither decided nor ended', next, wait)
    if (!open.includes(effect.status)) cli.exit_code = exit.declined
    cli.out.record(effect)
  },
}
