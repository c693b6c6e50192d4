// `bun bench/flood.ts`: what a flood of posts to one inbox does to the other inboxes of the same node, SQLite on disk.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connections, wrk_binary } from './load.ts'
import { command, cores, memoryMib, output, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { spread, table } from './table.ts'

const usage = `Usage: bun bench/flood.ts [options]

  --rounds <n>      quiet and flooded spells that are compared (default: 5)
  --root <folder>   measure the service of another checkout
  --help            this text`

const posts_least = 10_000
const flood_seconds = 3
const other_inboxes = 5
const others_a_second = 250
const quiet_seconds = 3
const body = JSON.stringify({ note: 'x'.repeat(288) })

await command(async () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      root: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  if (!wrk_binary) throw new Error('wrk is needed, which costs little beside the client that measures')
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  const service = await startService(values.root ?? join(import.meta.dir, '..'))
  const [flooded, others] = [await Client.signUp(service.url), await Client.signUp(service.url)]
  const target = await newInbox(flooded)
  const other_tokens: string[] = []
  for (let i = 0; i < other_inboxes; i++) other_tokens.push((await newInbox(others)).token)
  const urls = other_tokens.map((token) => `${service.url}/hook/${token}`)

  const flood = async () => {
    const script = join(import.meta.dir, 'flood.lua')
    const options = ['-t1', `-c${connections}`, `-d${flood_seconds}s`, '-s', script]
    const printed = await output([wrk_binary!, ...options, service.url, '--', target.token], cores.load)
    const posts = Number(/(\d+) requests in/.exec(printed)?.[1])
    if (!(posts >= posts_least) || /Non-2xx|Socket errors/.test(printed))
      throw new Error(`no flood: ${printed}`)
    return posts
  }
  await flood() // warms up
  const [quiet, during, ratios, rates, rss]: number[][] = [[], [], [], [], []]
  for (let round = 0; round < wholeNumber(values.rounds); round++) {
    quiet!.push(percentile(await latencies(urls, Bun.sleep(quiet_seconds * 1_000)), 95))
    const flooding = flood().then((posts) => rates!.push(posts))
    during!.push(percentile(await latencies(urls, flooding), 95))
    ratios!.push(during!.at(-1)! / quiet!.at(-1)!)
    rss!.push(memoryMib(service.pid).now)
  }
  const { data } = await flooded.read<{ data: { inbox: { messageCount: number } } }>(
    `/api/webhook/${target.id}`,
  )
  await service.stop()
  console.log(
    `\n${table(
      ['figure', 'median (least..most)', 'target'],
      [
        ['other inboxes, quiet: p95, ms', spread(quiet!, 2), ''],
        [`other inboxes, ${connections} connections flood one: p95, ms`, spread(during!, 2), ''],
        ['the same as a multiple of quiet', spread(ratios!, 2), '≤ 2'],
        [`posts of a flood of ${flood_seconds} s`, spread(rates!, 0), `≥ ${posts_least}`],
        ['RSS after each spell, MiB', spread(rss!, 0), 'flat'],
        ['messages kept of the flood', String(data.inbox.messageCount), '1000'],
      ],
    )}`,
  )
})

async function newInbox(client: Client): Promise<{ id: string; token: string }> {
  const made = await client.send<{ data: { id: string; token: string } }>({
    ...{ method: 'POST', path: '/api/webhook', body: '{}' },
  })
  return made.data
}

/** Milliseconds of posts at a steady rate, whether the one before was answered or not, until `spell` is over. */
async function latencies(urls: string[], spell: Promise<unknown>): Promise<number[]> {
  const seen: number[] = []
  const under_way: Promise<void>[] = []
  let over = false
  void spell.then(() => {
    over = true
  })
  const began = performance.now()
  for (let i = 0; !over; i++) {
    await Bun.sleep(Math.max(0, began + (i * 1_000) / others_a_second - performance.now()))
    under_way.push(posted(urls[i % urls.length]!, seen))
  }
  await spell
  await Promise.all(under_way)
  return seen
}

async function posted(url: string, seen: number[]): Promise<void> {
  const began = performance.now()
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} instead of 200`)
  seen.push(performance.now() - began)
}

function percentile(values: number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)]!
}
