import type { Attack } from './lib/lab.ts'

/** Of one address an hour, and of failed keys a minute: what the service allows by default, no more and no less. */
const sign_ups = 30
const failed_keys = 60
const wider = 10

export const manyAddresses: Attack = {
  name: 'many-addresses',
  about:
    'signs up and tries keys from the many addresses of one IPv6 network, and from many spellings of one address',
  engines: ['sqlite'],
  seconds_max: 60,
  async run(lab) {
    const service = await lab.service({ env: { TRUST_PROXY: '127.0.0.0/8', LOG_LEVEL: 'silent' } })
    let n = 0
    const signUps = async (count: number, address: (i: number) => string) => {
      let made = 0
      for (let i = 0; i < count; i++) {
        const headers = { 'x-forwarded-for': address(i), 'content-type': 'application/json' }
        const body = JSON.stringify({ name: `many-${n++}`, owner_email: 'a@example.com', plan: 'pro' })
        const answer = await fetch(`${service.url}/v1/tenants`, { method: 'POST', headers, body })
        await answer.text()
        if (answer.status === 201) made += 1
      }
      return made
    }
    for (const [what, count, allowed, address] of [
      ['one IPv4 address', 40, sign_ups, () => '203.0.113.9'],
      [
        'the same, written in IPv6',
        40,
        0,
        (i) => ['::ffff:203.0.113.9', '::FFFF:203.0.113.9', '::ffff:cb00:7109'][i % 3]!,
      ],
      ['one IPv4 address with ports', 60, sign_ups, (i) => `203.0.113.10:${1_000 + i}`],
      ['one IPv6 address in five spellings', 160, sign_ups, (i) => spellings[i % spellings.length]!],
      ['one /64', 100, sign_ups, (i) => `2001:db8:1:1::${(i + 1).toString(16)}`],
      ['one /48', 400, sign_ups * wider, (i) => `2001:db8:7:${(i + 1).toString(16)}::1`],
      ['one address with zones', 60, sign_ups, (i) => `fe80::1%z${i}`],
      ['a spoofed first address', 60, sign_ups, (i) => `1.2.3.${i}, 203.0.113.12`],
    ] as [string, number, number, (i: number) => string][]) {
      lab.bound(`${count} sign-ups from ${what}`, {
        'sign-ups': [await signUps(count, address), allowed, allowed],
      })
    }
    let tried = 0
    for (let i = 0; i < 100; i++) {
      const key = `Bearer svc_agt_${'a'.repeat(38)}`
      const headers = { authorization: key, 'x-forwarded-for': `2001:db8:2:2::${(i + 1).toString(16)}` }
      const answer = await fetch(`${service.url}/v1/kv/a/b`, { headers })
      await answer.text()
      if (answer.status === 401) tried += 1
    }
    lab.bound('100 failed keys from one /64', { 'keys judged': [tried, failed_keys, failed_keys] })
  },
}

const spellings = ['2001:db8::1', '2001:DB8::1', '2001:db8:0::1', '2001:0db8::1', '2001:db8:0:0:0:0:0:1']
