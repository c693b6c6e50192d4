// docs/tutorial.md and docs/recipes/, done step by step as they are printed, in a fresh checkout.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf, Checkout, masked, type Program } from './support/checkout.ts'
import { root } from './support/cli.ts'
import { until } from './support/patience.ts'

const checkout = new Checkout()
const tutorial = 'docs/tutorial.md'
const keys_file = 'data/tutorial.env'
let service: Program

afterAll(() => checkout.clean())

describe('The tutorial', () => {
  const commands = blocksOf(tutorial, 'sh')
  const [start, keys, receive, forge, ask, decide, look, failed, redrive, left, clean] = commands
  const [ready, kept, waiting, refused, asked, done, decided, gone, dead, arrived] = blocksOf(
    tutorial,
    'text',
  )
  let receiver: Program
  let finished: string

  test('has a command for each step', () => {
    expect(commands).toHaveLength(11)
  })

  test.each(['receiver', 'agent'])('prints examples/tutorial/%s.ts as it is', (name) => {
    expect(blocksOf(tutorial, 'ts')).toContain(
      readFileSync(join(root, `examples/tutorial/${name}.ts`), 'utf8'),
    )
  })

  test('1: the service starts', async () => {
    service = await checkout.serve(start!)
    expect(masked(service.stdout.text)).toContain(masked(ready!))
  })

  test('2: the keys are kept in a file', async () => {
    expect(masked(await checkout.run(keys!))).toBe(kept!)
  })

  test('3: the receiver refuses what is not signed', async () => {
    receiver = checkout.start(receive!)
    expect(await receiver.stdout.until('callbacks\n')).toBe(waiting!)
    expect(await checkout.run(forge!)).toBe('401\n')
    expect(receiver.stdout.text).toEndWith(refused!)
  })

  test('4 and 5: the agent asks and waits, is stopped, waits through a restart, and gets the decision', async () => {
    const stopped = checkout.start(ask!)
    expect(masked(await stopped.stdout.until('\n'))).toBe(asked!)
    await stopped.interrupt()
    const agent = checkout.start(ask!)
    expect(await agent.stdout.until('\n')).toBe(stopped.stdout.text)
    await service.interrupt()
    service = await checkout.serve(start!)

    await checkout.run(decide!)
    expect(await agent.ended).toBe(0)
    finished = agent.stdout.text
    expect(masked(finished)).toBe(asked! + done!)
    await receiver.stdout.until(decided!.split('…')[0]!)
    const seen = await checkout.run(`. ${keys_file}\n${look}`)
    expect(seen).toContain('"value":{"order":7,"cents":3000}')
    expect(seen.match(/"action":"refund\.paid"/g)).toHaveLength(1)
    expect(await checkout.run(ask!)).toBe(finished)
  })

  test('6: the reminder fails, and leaves a dead letter', async () => {
    await receiver.stdout.until(gone!)
    let items = ''
    while (!items.includes('dlq_')) items = await checkout.run(`. ${keys_file}\n${failed}`)
    expect(masked(items)).toContain(dead!.trim())
  })

  test('7: the receiver is mended, and the call is sent again', async () => {
    const [change] = blocksOf(tutorial, 'diff')
    const [, before, after] = /^-(.*)\n\+(.*)\n$/.exec(change!)!
    const file = 'examples/tutorial/receiver.ts'
    expect(checkout.read(file).split(before!)).toHaveLength(2)
    checkout.write(file, checkout.read(file).replace(before!, after!))
    await receiver.interrupt()
    receiver = checkout.start(receive!)
    await receiver.stdout.until(waiting!)

    await checkout.run(`. ${keys_file}\n${redrive}`)
    expect(await receiver.stdout.until(arrived!)).toBe(waiting! + arrived!)
    expect(`${await checkout.run(`. ${keys_file}\n${left}`)}\n`).toBe(blocksOf(tutorial, 'json')[0]!)
  })

  test('at the end the tenant waits for its deletion, and the keys are gone', async () => {
    expect(await checkout.run(`. ${keys_file}\n${clean}`)).toContain('"status":"pending_deletion"')
    expect(() => checkout.read(keys_file)).toThrow('ENOENT')
    await receiver.interrupt()
  })
})

describe('A recipe', () => {
  const names = readdirSync(join(root, 'docs/recipes')).map((file) => file.replace(/\.md$/, ''))
  const commandOf = (name: string) => blocksOf(`docs/recipes/${name}.md`, 'sh')[0]!
  let keys: Record<string, string>
  /** Those that end by themselves, started together. */
  let runs: Record<string, Promise<string>>

  beforeAll(async () => {
    const shown =
      await checkout.run(`${blocksOf('README.md', 'sh').find((block) => block.includes('TENANT='))}
      echo $ADMIN_KEY $AGENT_KEY`)
    const [, ADMIN_KEY, AGENT_KEY] = /(svc_adm_\w+) (svc_agt_\w+)\n$/.exec(shown)!
    keys = { ADMIN_KEY: ADMIN_KEY!, AGENT_KEY: AGENT_KEY! }
    const ending = ['retry', 'ten-workers', 'rate-limit']
    runs = Object.fromEntries(ending.map((name) => [name, checkout.run(commandOf(name), keys)]))
  })

  test.each(names)('%s has at most 100 lines, and prints its program as it is', (name) => {
    const page = readFileSync(join(root, `docs/recipes/${name}.md`), 'utf8')
    expect(page.split('\n').length).toBeLessThan(100)
    expect(blocksOf(`docs/recipes/${name}.md`, 'ts')).toEqual([
      readFileSync(join(root, `examples/recipes/${name}.ts`), 'utf8'),
    ])
  })

  test.each(['retry', 'ten-workers'])('%s prints what its page says', async (name) => {
    expect(await runs[name]).toBe(blocksOf(`docs/recipes/${name}.md`, 'text')[0]!)
  })

  test('ten-workers prints the same when it runs again', async () => {
    expect(await checkout.run(commandOf('ten-workers'), keys)).toBe((await runs['ten-workers'])!)
  })

  test('rate-limit calls the API nine times', async () => {
    const lines = (await runs['rate-limit'])!.trimEnd().split('\n')
    expect(new Set(lines).size).toBe(9)
  })

  test('phone waits for the person who has the link', async () => {
    const [asked, decided] = blocksOf('docs/recipes/phone.md', 'text')
    const program = checkout.start(commandOf('phone'), keys)
    const link = await program.stdout.until('\n')
    expect(masked(link)).toBe(masked(asked!))
    const [, id, key] = /\/approve\/(chk_\w+)#(\S+)/.exec(link)!
    await fetch(`${checkout.url}/v1/checkpoints/${id}/approve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-approval-key': key! },
      body: '{"reason": "looks good"}',
    })
    expect(await program.ended).toBe(0)
    expect(masked(program.stdout.text)).toBe(masked(asked! + decided!))
  })

  test('webhook does not start without the secret that shows which messages are genuine', async () => {
    const [command] = blocksOf('docs/recipes/webhook.md', 'sh')
    for (const without of ['env -u WEBHOOK_SECRET npx', "WEBHOOK_SECRET='' npx"]) {
      const program = checkout.start(command!.replace(/WEBHOOK_SECRET='.*' npx/, without), keys)
      expect(await program.ended).toBe(1)
      expect(await program.stderr.all()).toContain('WEBHOOK_SECRET is missing')
    }
  })

  test('webhook prints what was signed, refuses what was not, and goes on where it was', async () => {
    const [command, send] = blocksOf('docs/recipes/webhook.md', 'sh')
    const [url, taken] = blocksOf('docs/recipes/webhook.md', 'text')
    const program = checkout.start(command!, keys)
    const shown = await program.stdout.until('\n')
    expect(masked(shown)).toBe(masked(url!))
    const inbox_url = shown.trim().split(' ').at(-1)!
    const sent = send!.replace(/(?<=^INBOX_URL=).*$/m, inbox_url)
    expect(await checkout.run(sent)).toBe('{"received":true}{"received":true}')
    expect(await program.stdout.until(taken!.split('\n')[1]!)).toContain(taken!)
    // It remembers a message once it has been handled.
    await until(async () => {
      const headers = { authorization: `Bearer ${keys.AGENT_KEY}` }
      const state = await fetch(`${checkout.url}/v1/kv/webhooks/orders`, { headers })
      return ((await state.json()) as { version: number }).version === 3
    })
    await program.interrupt()

    const again = checkout.start(command!, keys)
    expect(await again.stdout.until('\n')).toBe(shown)
    await checkout.run(sent)
    expect(await again.stdout.until(taken!.split('\n')[1]!)).toContain(shown + taken!)
    await again.interrupt()
  })
})
