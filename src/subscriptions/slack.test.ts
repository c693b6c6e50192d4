import { describe, expect, test } from 'bun:test'
import { day_ms, hour_ms, minute_ms } from '../base/clock.ts'
import { confirmationMail, eventMail } from './mail-text.ts'
import { slackBody } from './slack.ts'
import { maskedAddress, maskedUrl, sameAddress, takes, unknownAmong } from './subscription.ts'
import { remaining, type Told } from './words.ts'

const asks: Told = {
  event: {
    ...{ type: 'checkpoint.created', subject_kind: 'checkpoint', subject_id: 'chk_1' },
    ...{ workflow_id: 'order-7', agent_id: 'billing', data: { title: 'Refund?' } },
  },
  about: 'A checkpoint was created.',
  checkpoint: {
    ...{ id: 'chk_1', title: 'Refund <b>7</b> & more?', status: 'pending', agent_id: 'billing' },
    expires_at: 59 * minute_ms + 30_000,
  },
  now: 0,
  public_url: 'https://waystation.example.com',
}

const failed: Told = {
  ...asks,
  event: {
    ...{
      type: 'schedule.failed',
      subject_kind: 'schedule',
      subject_id: 'sch_1',
      workflow_id: null,
      agent_id: null,
    },
    data: { attempts: 3, last_error: 'status <503>', reason: null },
  },
  about: 'No attempt is left.',
  checkpoint: null,
}

const plain = (text: string) => ({ type: 'plain_text', text, emoji: false })
const titled = (title: string): Told => ({ ...asks, checkpoint: { ...asks.checkpoint!, title } })
const lineOf = (told: Told): string => JSON.parse(slackBody(told)).text.split('\n')[0]

describe('A message for Slack', () => {
  test('about a checkpoint that waits has title, time left, agent, and the address of the approval page without a key', () => {
    const url = 'https://waystation.example.com/approve/chk_1'
    expect(JSON.parse(slackBody(asks))).toEqual({
      text: `*Refund &lt;b&gt;7&lt;/b&gt; &amp; more?*\nWaits for a decision · 59 minutes left · agent billing · workflow order-7\n<${url}|Review and decide>`,
      blocks: [
        { type: 'header', text: plain('Refund <b>7</b> & more?') },
        {
          type: 'context',
          elements: [plain('Waits for a decision · 59 minutes left · agent billing · workflow order-7')],
        },
        {
          type: 'actions',
          elements: [{ type: 'button', style: 'primary', text: plain('Review and decide'), url }],
        },
      ],
    })
  })

  test('about a checkpoint that was decided meanwhile says so, without a button', () => {
    const decided = { ...asks, checkpoint: { ...asks.checkpoint!, title: 'Refund?', status: 'approved' } }
    expect(JSON.parse(slackBody(decided))).toEqual({
      text: '*Refund?: already approved*\nagent billing · workflow order-7',
      blocks: [
        { type: 'header', text: plain('Refund?: already approved') },
        { type: 'context', elements: [plain('agent billing · workflow order-7')] },
      ],
    })
  })

  test('about anything else has what happened, to what, and its small data', () => {
    expect(JSON.parse(slackBody(failed)).text).toBe(
      '*Schedule failed*\nschedule schˍ1 · No attempt is left · attempts: 3 · last error: status &lt;503&gt;',
    )
  })

  test('shows a title in one line, and its markup as text', () => {
    expect(lineOf(titled('ok*\n\n<!channel> *approve\u2028now'))).toBe('*ok∗ &lt;!channel&gt; ∗approve now*')
  })

  test.each([
    ['[Approve](https://evil.example/x)', '［Approve］❨https∶//evil․example/x❩'],
    ['see www.evil.com or evil.com/x', 'see www․evil․com or evil․com/x'],
    ['<https://evil.example|Approve>', '&lt;https∶//evil․example∣Approve&gt;'],
    ['@channel @here <@U1> ask boss@example.com', '＠channel ＠here &lt;＠U1&gt; ask boss＠example․com'],
    ['#general ~town-square :tada:', '＃general ∼town-square ∶tada∶'],
    ['_a_ ~b~ `c` \\*d*', 'ˍaˍ ∼b∼ ˋcˋ ∖∗d∗'],
    ['![x](//evil.example/y.png)', '!［x］❨//evil․example/y․png❩'],
    ['javascript:alert(1)', 'javascript∶alert❨1❩'],
    ['Refund order #7: 50.20 at 10 %', 'Refund order #7: 50.20 at 10 %'],
    ['chk_01m7yjrz7dy8h1gqvnfh3ydc8h', 'chk_01m7yjrz7dy8h1gqvnfh3ydc8h'],
  ])('no receiver makes a link, a mention or a form of %j', (title, shown) => {
    expect(lineOf(titled(title))).toBe(`*${shown}*`)
    const workflow_id = title
    const about = JSON.parse(slackBody({ ...failed, event: { ...failed.event, workflow_id } }))
    expect(about.text).toContain(`· workflow ${shown}`)
    expect(about.blocks.every(({ text }: { text?: { type: string } }) => text?.type !== 'mrkdwn')).toBe(true)
  })

  test('a title that is too long for a header is shown whole', () => {
    expect(JSON.parse(slackBody(titled('x'.repeat(150)))).blocks[0].type).toBe('header')
    expect(JSON.parse(slackBody(titled('x'.repeat(151)))).blocks[0]).toEqual({
      type: 'section',
      text: plain('x'.repeat(151)),
    })
  })
})

const to = {
  ...{ address: 'a@example.com', token: 'ten_1.x', public_url: asks.public_url, tenant_name: 'Acme' },
  message_id: 'evt_1-sub_1',
}

test('an email about a checkpoint that waits says what waits, and where it is decided', () => {
  expect(eventMail(to, asks)).toEqual({
    to: 'a@example.com',
    subject: 'Waits for you: Refund <b>7</b> & more?',
    text: `Waits for a decision.

Review and decide:
https://waystation.example.com/approve/chk_1

> Refund <b>7</b> & more?

- 59 minutes left
- agent billing
- workflow order-7

-- 
Sent for Acme because this address was confirmed. To end these emails, open this page and press the button:
https://waystation.example.com/mail/unsubscribe/ten_1.x
`,
    headers: {
      'Message-ID': '<evt_1-sub_1@waystation.example.com>',
      'Auto-Submitted': 'auto-generated',
      'List-Unsubscribe': '<https://waystation.example.com/mail/unsubscribe/ten_1.x>',
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    },
  })
})

test('an email about a checkpoint that was decided meanwhile says so before its title, without a link', () => {
  const decided = { ...asks, checkpoint: { ...asks.checkpoint!, title: 'Refund?', status: 'approved' } }
  const { subject, text } = eventMail(to, decided)
  expect(subject).toBe('Already approved: Refund?')
  expect(text).toStartWith('Already approved.\n\n> Refund?\n\n- agent billing\n- workflow order-7\n\n-- \n')
})

describe('An email', () => {
  test.each([
    ['Review: https://evil.example/approve/chk_1', 'Review: https∶//evil․example/approve/chk_1'],
    ['see www.evil.com or evil.com/x', 'see www․evil․com or evil․com/x'],
    ['http://127.0.0.1:8080/x', 'http∶//127․0.0.1:8080/x'],
    ['evil.\u200bcom', 'evil․\u200bcom'],
    ['ask boss@example.com', 'ask boss＠example․com'],
    ['mailto:boss', 'mailto∶boss'],
    ['Refund order #7: 50.20 at 10:30', 'Refund order #7: 50.20 at 10:30'],
    ['chk_01m7yjrz7dy8h1gqvnfh3ydc8h', 'chk_01m7yjrz7dy8h1gqvnfh3ydc8h'],
  ])('makes no link of %j, no matter who wrote it', (given, shown) => {
    const { subject, text } = eventMail(to, titled(given))
    expect(subject).toBe(`Waits for you: ${shown}`)
    expect(text).toContain(`/approve/chk_1\n\n> ${shown}\n`)
    const event = { ...failed.event, workflow_id: given, data: { action: given } }
    const about = eventMail(to, { ...failed, event }).text
    expect(about).toContain(`- workflow ${shown}\n`)
    expect(about).toContain(`- action: ${shown}\n`)
    const asking = confirmationMail({ ...to, tenant_name: given })
    expect(asking.subject).toBe(`Confirm emails from ${shown}`)
    expect(asking.text).toStartWith(`Somebody asked ${shown} to send`)
    expect(eventMail({ ...to, tenant_name: given }, failed).text).toContain(`Sent for ${shown} because`)
  })
})

test.each([' ', '\u200b', '\n \u2060\ufeff', '\u3164\u2800'])(
  'a blank title %j is named as such',
  (title) => {
    expect(lineOf(titled(title))).toBe('*A request without a title*')
    const [header] = JSON.parse(slackBody(titled(title))).blocks
    expect(header.text.text).toBe('A request without a title')
    expect(eventMail(to, titled(title)).subject).toBe('Waits for you: A request without a title')
  },
)

test.each([
  [0, 'less than a minute'],
  [minute_ms, '1 minute'],
  [2 * hour_ms - 1, '119 minutes'],
  [2 * hour_ms, '2 hours'],
  [2 * day_ms - 1, '47 hours'],
  [3 * day_ms, '3 days'],
])('%d ms are %s', (ms, text) => expect(remaining(ms)).toBe(text))

test.each([
  ['https://hooks.slack.com/services/T0/B0/aB3d', 'https://hooks.slack.com/…aB3d'],
  ['https://example.com:8443/events?key=12345678', 'https://example.com:8443/…5678'],
  ['https://example.com/short', 'https://example.com/…'],
  ['https://example.com/', 'https://example.com/'],
])('%s is shown as %s', (url, shown) => expect(maskedUrl(url)).toBe(shown))

test('an address is shown by its first character and its domain', () => {
  expect(maskedAddress('ada@example.com')).toBe('a…@example.com')
})

test('noun.* takes all types of the noun, and of no other', () => {
  expect(takes(['schedule.*'], 'schedule.failed')).toBe(true)
  expect(takes(['schedule.*'], 'schedules.failed')).toBe(false)
  expect(takes(['schedule.fired'], 'schedule.failed')).toBe(false)
  expect(unknownAmong(['a.*', 'b.c', 'b.d'], ['b.c'])).toEqual(['a.*', 'b.d'])
})

test('an address is the same in capital letters', () => {
  expect(sameAddress('Ada.L@Example.COM')).toBe('ada.l@example.com')
})
