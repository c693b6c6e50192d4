// What the console is looked at with: a night and an hour of a small company's agents, lived through the API.

import { Waystation } from '../../sdk/src/index.ts'
import { finishEffects, openEffects } from './console-seed-effects.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { cron_secret, type TestService } from './service.ts'

const second_ms = 1_000
const minute_ms = 60 * second_ms
const hour_ms = 60 * minute_ms
const night_hours = 22

export interface Company {
  tenant_id: string
  admin_key: string
  /** Decides `waiting`, the request that waits longest. */
  approval_url: string
  waiting: string
}

export interface Staff {
  service: TestService
  admin: Waystation
  billing: Waystation
  support: Waystation
  deploy: Waystation
  research: Waystation
  /** Takes what is sent to /ok, is away at /down. */
  receiver: Receiver
  /** Time passes, and what became due is done. */
  pass(ms: number): Promise<void>
  /** An instant so far from now. */
  in(ms: number): string
  /** A call of the billing agent for the workflow of one invoice. Answers the id of what was made. */
  forInvoice(path: string, body: object): Promise<string>
}

/** When it is over the service has the real time, and nothing of it asks for the receiver any more. */
export async function liveAnHour(
  service: TestService,
  { name, plan = 'pro' }: { name: string; plan?: 'free' | 'pro' },
): Promise<Company> {
  service.clock.jump(Date.now() - (night_hours + 1) * hour_ms - service.clock.now())
  const receiver = await startReceiver()
  try {
    receiver.answer = ({ target }) => (target.startsWith('/ok') ? {} : { status: 503 })
    const { url } = service
    const tenant = await new Waystation({ url }).tenants.create({
      name,
      owner_email: 'operations@example.com',
      plan,
    })
    const staff = await hire(service, receiver, new Waystation({ url, key: tenant.admin_key }))
    await aNight(staff)
    await fillTheStore(staff)
    await workAnHour(staff)
    // What is still to come is counted from now.
    service.clock.jump(Date.now() - 3 * second_ms - service.clock.now())
    const { approval_url, waiting } = await leaveWork(staff)
    service.clock.jump(Date.now() - service.clock.now())
    return { tenant_id: tenant.tenant_id, admin_key: tenant.admin_key, approval_url, waiting }
  } finally {
    await receiver.stop()
  }
}

async function hire(service: TestService, receiver: Receiver, admin: Waystation): Promise<Staff> {
  const { url, clock } = service
  const keys: Record<string, string> = {}
  const agentOf = async (name: string, description: string) => {
    const { agent_id, api_key } = await admin.agents.create({ name, description })
    keys[name] = api_key
    return new Waystation({ url, key: api_key, agent_id })
  }
  const cron = new Waystation({ url, key: cron_secret })
  return {
    ...{ service, receiver, admin },
    billing: await agentOf('billing', 'Charges cards, sends invoices, asks before it pays back.'),
    support: await agentOf('support', 'Sorts tickets and answers the easy ones.'),
    deploy: await agentOf('deploy', 'Rolls releases out, region by region.'),
    research: await agentOf('research', 'Reads the news of suppliers every morning.'),
    async pass(ms) {
      clock.advance(ms)
      await cron.tick()
    },
    in: (ms) => new Date(clock.now() + ms).toISOString(),
    async forInvoice(path, body) {
      const headers = { 'x-workflow-id': 'refund-2026-1042' }
      const { body: made } = await service.ask('POST', path, { key: keys.billing!, headers, body })
      return made.id
    },
  }
}

/** Quiet, with a peak in the morning: the chart of activity shows it. */
async function aNight({ research, service: { clock } }: Staff): Promise<void> {
  for (let hour = 0; hour < night_hours; hour += 1) {
    const calls = 8 + ((hour * 7) % 5) * 3 + (hour > 14 ? 4 * (hour - 12) : 0)
    const puts = Array.from({ length: calls }, (_, call) =>
      research.kv.put('news', 'cursor', hour * 100 + call),
    )
    await Promise.all(puts)
    for (let i = 0; i < (hour * 5) % 4; i += 1) await research.kv.find('news', 'absent')
    clock.advance(hour_ms)
  }
}

async function fillTheStore({ billing, support, deploy, research, admin }: Staff): Promise<void> {
  const last_run = { invoices: 318, total: '41,207.15', currency: 'EUR', next_id: 9007199254740993n }
  await billing.kv.put('state', 'last-run', last_run)
  await billing.kv.put('state', 'customers/1042', {
    name: 'Löwe & Söhne',
    since: '2019-03-01',
    tags: ['vip'],
  })
  await billing.kv.put('__agent.billing', 'card-tokens', { visa: 'tok_8f3a…', expires: '2028-11' })
  await support.kv.put('state', 'queue', ['ticket-8812', 'ticket-8815', 'ticket-8816'])
  await support.kv.put('cache', 'faq:refunds', 'Refunds take 3 to 5 days.', { ttl_seconds: 20 * 3_600 })
  await support.kv.put('cache', 'faq:returns', 'Send it back within 30 days.', { ttl_seconds: 5 * 3_600 })
  await deploy.kv.put('locks', 'release', { held_by: 'deploy', step: 3 }, { ttl_seconds: 2 * 3_600 })
  for (let i = 0; i < 24; i += 1) await research.kv.put('news', `supplier-${i}`, { seen: i, urls: [] })
  for (const [key, hits, limit] of [
    ['openai:gpt', 41, 60],
    ['stripe:charges', 25, 25],
    ['github:api', 12, 500],
    ['mail:customer-1042', 2, 3],
  ] as const) {
    const rule = { limit, windowSeconds: 3 * 3_600, cost: hits }
    await billing.rateLimit.check(key, rule)
  }
  const sliding = { limit: 100, windowSeconds: 3 * 3_600, algorithm: 'sliding_window', cost: 73 } as const
  await research.rateLimit.check('crawler:news.example', sliding)
  await admin.approvalKeys.create({ label: 'Slack bot of the finance team' })
}

async function workAnHour(staff: Staff): Promise<void> {
  await decideOthers(staff)
  await receiveWebhooks(staff)
  await parkFailures(staff)
  await staff.pass(2 * minute_ms)
  const hooks = await subscribe(staff)
  await runSchedules(staff)
  await keepTheLog(staff)
  await payBack(staff)
  await finishEffects(staff)
  await untilDelivered(staff, hooks)
}

/** A channel, and a receiver that is away. */
async function subscribe({ admin, receiver }: Staff): Promise<{ channel: string; monitor: string }> {
  const channel = await admin.subscriptions.create({
    ...{ name: 'Decisions, in #finance', url: `${receiver.url}/ok/slack`, format: 'slack' },
    types: ['checkpoint.approved', 'checkpoint.rejected'],
  })
  const monitor = await admin.subscriptions.create({
    ...{ url: `${receiver.url}/down/monitor`, types: ['schedule.failed', 'dlq.*'] },
  })
  return { channel: channel.id, monitor: monitor.id }
}

/** Nothing is left that would be sent once the receiver is gone. */
async function untilDelivered({ admin, pass }: Staff, { channel, monitor }: Record<string, string>) {
  for (let tries = 0; tries < 20; tries += 1) {
    await pass(second_ms)
    if ((await Array.fromAsync(admin.subscriptions.attempts(channel!))).length > 0) break
  }
  await admin.subscriptions.update(monitor!, { paused: true })
}

/** One workflow from the message to the refund, with a decision, and a call that was sent again. */
async function payBack({ admin, forInvoice, receiver, pass, in: inMs }: Staff): Promise<void> {
  await forInvoice('/v1/audit', {
    action: 'charge.found-twice',
    metadata: { invoice: '2026-1042', charges: ['ch_3Q1a', 'ch_3Q1b'] },
  })
  const question = await forInvoice('/v1/checkpoints', {
    title: 'Pay back 1,250.00 EUR to Löwe & Söhne?',
    prompt: 'The customer was charged **twice** for invoice 2026-1042. The second charge is to be paid back.',
    callback_url: `${receiver.url}/ok/decided`,
    callback_payload: { invoice: '2026-1042', amount: { value: '1250.00', currency: 'EUR' } },
    timeout_seconds: 3 * 3_600,
  })
  await pass(12 * minute_ms)
  await admin.checkpoints.approve(question, { reason: 'Checked with the bank. Pay it back today.' })
  await pass(second_ms)
  await forInvoice('/v1/schedules', {
    ...{ name: 'Refund to the card', callback_url: `${receiver.url}/down/refunds`, dlq_on_failure: true },
    ...{ callback_payload: { charge: 'ch_3Q1b', amount: '1250.00' }, fire_at: inMs(minute_ms) },
  })
  for (const wait_ms of [minute_ms, 40 * second_ms, 130 * second_ms]) await pass(wait_ms)
  await forInvoice('/v1/checkpoints', {
    title: 'Send the apology to the customer?',
    ...{ prompt: 'The refund is not through yet.', callback_url: null, timeout_seconds: 2 * 3_600 },
  })
}

/** Requests that nobody decided yet, schedules of the days to come, and one that is tried again soon. */
async function leaveWork(staff: Staff): Promise<{ approval_url: string; waiting: string }> {
  const { billing, support, deploy, receiver, pass } = staff
  await scheduled(staff, deploy, '/down/warm-caches', second_ms)
  await pass(2 * second_ms)
  const minutes = [4, 9, 35, 3 * 60, 3 * 60 + 20, 16 * 60, 26 * 60, 7 * 24 * 60]
  for (const [i, minute] of minutes.entries())
    await scheduled(staff, billing, `/ok/reminder-${i + 1}`, minute * minute_ms)
  const callback_url = `${receiver.url}/ok/decided`
  const { id: waiting } = await billing.checkpoints.create({
    title: 'Pay back 1,250.00 EUR to Löwe & Söhne?',
    prompt: [
      'The customer was charged twice for invoice 2026-1042.',
      'Both charges went through; the second one is to be paid back.',
      '',
      'Nothing was paid back for this invoice before.',
    ].join('\n'),
    callback_url,
    callback_payload: {
      invoice: '2026-1042',
      amount: { value: '1250.00', currency: 'EUR' },
      charges: [
        { id: 'ch_3Q1a', at: '2026-11-20T09:14:03Z', amount: '1250.00' },
        { id: 'ch_3Q1b', at: '2026-11-20T09:14:09Z', amount: '1250.00' },
      ],
      receipt: 'https://billing.example.com/receipts/2026-1042',
    },
    timeout_seconds: 3 * 3_600,
    timeout_action: 'dlq',
  })
  await deploy.checkpoints.create({
    title: 'Roll release 4.2 out to eu-west',
    prompt: 'Canary: 0 errors in 30 minutes.',
    callback_url,
    timeout_seconds: 40 * 60,
  })
  const answer = { to: 'ticket-8815', text: 'We are sorry to hear that …' }
  await support.checkpoints.create({
    title: 'Send this answer to a customer who is upset, in the name of the company?',
    callback_url,
    callback_payload: answer,
    timeout_seconds: 25 * 3_600,
  })
  await openEffects(staff)
  const { approval_url } = await staff.admin.approvalKeys.create({ checkpoint_id: waiting, label: 'Ada' })
  return { approval_url: approval_url!, waiting }
}

/** Approved, rejected by hand and by time, expired with a dead letter, withdrawn; one answer did not arrive. */
async function decideOthers({ admin, billing, support, deploy, receiver, pass }: Staff): Promise<void> {
  const ask = async (agent: Waystation, title: string, rest: object = {}) => {
    const callback_url = `${receiver.url}/ok/decided`
    return (await agent.checkpoints.create({ title, callback_url, timeout_seconds: 300, ...rest })).id
  }
  const release = await ask(deploy, 'Roll release 4.1.3 out to us-east')
  const discount = await ask(support, 'Give 40 % off to keep a customer?', {
    callback_payload: { offer: 40 },
  })
  const unheard = await ask(deploy, 'Drop the table of old sessions', {
    callback_url: `${receiver.url}/down/decided`,
  })
  const twice = await ask(support, 'Answer ticket 8812 twice')
  await ask(billing, 'Write off 12.40 EUR', { timeout_action: 'dlq' })
  await ask(billing, 'Send a third reminder')
  await pass(minute_ms)
  await admin.checkpoints.approve(release, { reason: 'Canary looks good.' })
  await admin.checkpoints.reject(discount, { reason: '15 % is the most that the policy allows.' })
  await admin.checkpoints.approve(unheard)
  await support.checkpoints.cancel(twice)
  for (const wait_ms of [0, 40 * second_ms, 100 * second_ms, 8 * minute_ms]) await pass(wait_ms)
}

async function receiveWebhooks({ service, admin, support, billing, receiver, pass }: Staff): Promise<void> {
  const post = (url: string, type: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
    service.ask('POST', new URL(url).pathname + new URL(url).search, {
      headers: { 'content-type': type, ...headers },
      body,
    })
  const day = 24 * 3_600
  const github = await support.inboxes.create({ label: 'GitHub', ttl: 7 * day })
  const forwardUrl = `${receiver.url}/ok/forwarded`
  const stripe = await billing.inboxes.create({ label: 'Stripe', ttl: 3 * day, forwardUrl })
  const form = await admin.inboxes.create({ label: 'Contact form', forwardUrl: `${receiver.url}/down` })
  const event = {
    action: 'opened',
    issue: { number: 311, title: 'Login fails on Safari' },
    sender: 'octocat',
  }
  await post(`${github.url}/push?branch=main&branch=next`, 'application/json', JSON.stringify(event), {
    'x-github-event': 'issues',
  })
  const charge = '{"id":"evt_1Q","type":"charge.succeeded","amount":125000,"balance":90071992547409931}'
  await post(stripe.url, 'application/json', charge, { 'stripe-signature': 't=1,v1=5257a869e7' })
  await post(form.url, 'application/x-www-form-urlencoded', 'name=Ada+Lovelace&message=Where+is+my+parcel%3F')
  await post(form.url, 'text/plain; charset=utf-8', 'Just a line.\nAnd another one.')
  await post(form.url, 'application/octet-stream', Uint8Array.of(0, 255, 137, 80, 78, 71, 13, 10, 26, 10))
  await pass(minute_ms)
}

async function parkFailures({ admin, billing, support, research, pass }: Staff): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    await billing.dlq.create({
      error: 'card_declined: the bank refused the charge',
      workflow_id: `invoice-2026-10${40 + i}`,
      payload: { invoice: `2026-10${40 + i}`, amount: '89.00', tries: 3 },
    })
  }
  await research.dlq.create({
    error:
      'TimeoutError: supplier.example did not answer in 30 s\n    at read (reader.ts:41:9)\n    at main.ts:7:3',
    payload: ['https://supplier.example/news', { depth: 2 }],
  })
  const ticket = { error: 'No language recognised', workflow_id: 'ticket-8810', payload: { ticket: 8810 } }
  const resolved = await support.dlq.create(ticket)
  const given_up = await support.dlq.create({ ...ticket, error: 'Attachment is encrypted' })
  const held = await support.dlq.create({ ...ticket, error: 'The translation service is away' })
  await pass(minute_ms)
  await support.dlq.claim(resolved.id)
  await support.dlq.resolve(resolved.id)
  await support.dlq.claim(given_up.id)
  await support.dlq.fail(given_up.id)
  await support.dlq.claim(held.id, { lock_seconds: 7_200 })
  const scanned = [
    'page 3 of the scan is blank',
    'page 7 of the scan is blank',
    'page 9 of the scan is blank',
  ]
  for (const error of scanned) await research.dlq.create({ error, payload: null })
  await admin.dlq.discardMany({ filter: { cause: 'page … of the scan is blank' } })
  await pass(second_ms)
}

/** Fired, failed with and without a dead letter, refused, withdrawn. */
async function runSchedules(staff: Staff): Promise<void> {
  const { admin, billing, deploy, research, pass } = staff
  await scheduled(staff, billing, '/ok/send-invoices', minute_ms)
  await scheduled(staff, deploy, '/ok/rotate-logs', 2 * minute_ms)
  await scheduled(staff, billing, '/down/charge-cards', minute_ms, true, 'Charge the cards of November')
  const news = await scheduled(staff, research, '/down/read-news', 2 * minute_ms)
  await scheduled(staff, research, 'http://127.0.0.1:1/nobody-listens', minute_ms, true)
  const restart = await scheduled(staff, deploy, '/ok/restart', hour_ms)
  await deploy.schedules.cancel(restart)
  for (const wait_ms of [3 * minute_ms, 40 * second_ms, 100 * second_ms, 6 * minute_ms]) await pass(wait_ms)
  await admin.schedules.retry(news)
  for (const wait_ms of [0, 40 * second_ms, 100 * second_ms]) await pass(wait_ms)
}

async function scheduled(
  { receiver, in: inMs }: Staff,
  agent: Waystation,
  path: string,
  ms: number,
  dlq_on_failure = false,
  name?: string,
): Promise<string> {
  const { id } = await agent.schedules.create({
    callback_url: path.startsWith('http') ? path : `${receiver.url}${path}`,
    callback_payload: { job: path.split('/').at(-1), parts: [1, 2, 3] },
    fire_at: inMs(ms),
    dlq_on_failure,
    ...(name !== undefined && { name }),
  })
  return id
}

async function keepTheLog({ admin, billing, support, deploy, service: { clock } }: Staff): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    const workflow_id = `invoice-2026-10${40 + i}`
    const steps = [
      'invoice.drafted',
      'invoice.sent',
      'charge.tried',
      i === 2 ? 'charge.succeeded' : 'charge.failed',
    ]
    for (const [step, action] of steps.entries()) {
      await billing.audit.append({ action, workflow_id, metadata: { invoice: `2026-10${40 + i}`, step } })
      clock.advance(7 * second_ms)
    }
  }
  for (let i = 0; i < 12; i += 1) {
    const metadata = { ticket: 8800 + i, words: ['refund', 'late'] }
    await support.audit.append({ action: 'ticket.sorted', workflow_id: `ticket-${8800 + i}`, metadata })
    clock.advance(3 * second_ms)
  }
  await deploy.audit.append({ action: 'release.rolled-out', actor: 'deploy', metadata: { release: '4.1.3' } })
  await admin.audit.append({
    action: 'policy.changed',
    actor: 'ada@example.com',
    metadata: { discount_max: 15 },
  })
}
