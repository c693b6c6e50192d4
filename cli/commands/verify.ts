// waystation verify: checks a bundle of the seal offline.

import type { Cli } from '../cli.ts'
import { CliError, exit } from '../failures.ts'
import { fileText, stdinText, withoutMark } from '../input.ts'
import type { OwnCommand } from '../spec.ts'
import { visible } from '../text.ts'
import { type Report, verifyBundle } from '../verify/bundle.ts'
import { Refused } from '../verify/refused.ts'

export const verify: OwnCommand = {
  usage: 'verify <bundle>',
  about: 'Check a bundle of the seal offline: exit code 0 when it is valid, 5 when not',
  examples: [
    'waystation seal bundle --workflow order-17 --from 120 --json > order-17.json',
    'waystation verify order-17.json --checkpoint kept.txt',
    'waystation seal bundle --json | waystation verify -',
  ],
  options: [
    { flag: '--checkpoint <path>', about: 'a checkpoint that you kept: the bundle must continue from it' },
    {
      flag: '--public-key <key>',
      about: 'the key that you trust, name+hash+key; default those in the bundle',
    },
    {
      flag: '--after <seq>',
      about: 'the bundle may begin after this event: earlier ones were checked, or removed by retention',
      reads: 'whole_number',
    },
    {
      flag: '--part',
      about: 'the bundle is one part of a long journal, and may end before the checkpoint that you kept',
    },
  ],
  async run(cli, { bundle, checkpoint, publicKey: key, after, part }) {
    const text =
      bundle === '-' ? await stdinText(cli, 'There is no bundle on standard input.') : fileText(bundle)
    const kept = checkpoint === undefined ? undefined : withoutMark(fileText(checkpoint))
    const report = reportOf(withoutMark(text), { checkpoint: kept, key, after, part })
    if (cli.out.json) cli.out.value({ valid: true, ...report })
    else print(cli, report)
  },
}

function reportOf(text: string, known: Parameters<typeof verifyBundle>[1]): Report {
  try {
    return verifyBundle(text, known)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    throw new CliError(
      'NOT_VALID',
      `Not valid: ${error.message}.`,
      exit.conflict,
      'Keep the bundle and your checkpoint as evidence, and ask the operator of the service.',
    )
  }
}

function print(cli: Cli, report: Report): void {
  const { events, workflow_id, origin, size, after, next_after, kept_size, key, key_is_given } = report
  const what = workflow_id === null ? 'the journal' : `the workflow ${JSON.stringify(workflow_id)}`
  const lines = [
    `Valid: ${events} events of ${what} in ${origin}, a tree of ${size} events.`,
    ...(after > 0 ? [`It begins after event ${after}: earlier events are not in this bundle.`] : []),
    ...(next_after === null
      ? []
      : [`It continues after event ${next_after}: this is not all of the journal.`]),
    kept_size === null
      ? 'No checkpoint was given: this shows only that the bundle agrees with itself.'
      : kept_size > size
        ? `It is the beginning of the ${kept_size} events whose checkpoint you kept; the others are not in it.`
        : `It continues from the checkpoint of ${kept_size} events that you kept.`,
    key_is_given
      ? 'It is signed by the key that you gave.'
      : `It is signed by a key that the bundle names itself; compare it with one that you trust: ${key}`,
  ]
  for (const line of lines) cli.out.text(visible(line))
}
