// waystation checkpoint wait

import { type Checkpoint, WaystationTimeoutError } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit } from '../failures.ts'
import type { OwnCommand } from '../spec.ts'

const timer_ms_max = 2 ** 31 - 1
const example = 'chk_01m7yjrz37hxnv52px0106nehd'

export const checkpointWait: OwnCommand = {
  usage: 'checkpoint wait <id>',
  about: 'Wait for the decision: exit code 0 when approved, 8 when not',
  examples: [
    `waystation checkpoint wait ${example} && ./deploy`,
    `waystation checkpoint wait ${example} --for 10m   # exit code 7 when that is over`,
  ],
  path: ['id'],
  options: [
    {
      flag: '--for <duration>',
      about: 'how long at most; default until it is decided',
      reads: 'duration',
    },
  ],
  async run(cli, { id, for: wait_seconds }) {
    const checkpoint = await decision(cli, id, wait_seconds)
    if (checkpoint.status !== 'approved') cli.exit_code = exit.declined
    cli.out.record(checkpoint)
  },
}

async function decision(cli: Cli, id: string, wait_seconds: number | undefined): Promise<Checkpoint> {
  const { checkpoints } = cli.client()
  if (wait_seconds === undefined) return checkpoints.waitFor(id, cli.retries)
  const over = new Error('the time to wait is over')
  const controller = new AbortController()
  const until_ms = performance.now() + wait_seconds * 1_000
  let timer: ReturnType<typeof setTimeout>
  // A timer that is set for longer than timer_ms_max fires at once.
  const arm = () => {
    const left_ms = until_ms - performance.now()
    timer = setTimeout(
      left_ms > timer_ms_max ? arm : () => controller.abort(over),
      Math.min(left_ms, timer_ms_max),
    )
  }
  arm()
  try {
    return await checkpoints.waitFor(id, { ...cli.retries, signal: controller.signal })
  } catch (error) {
    if (error !== over) throw error
    throw new WaystationTimeoutError(wait_seconds * 1_000, `Not decided within ${wait_seconds} s.`)
  } finally {
    clearTimeout(timer!)
  }
}
