import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runAlone } from './lib/alone.ts'
import { startChild } from './lib/children.ts'
import type { Attack, Lab } from './lib/lab.ts'
import { lateness } from './lib/late.ts'
import { ownMounts } from './lib/needs.ts'
import type { Tenant } from './lib/service.ts'
import { expectMade, statusesText } from './lib/statuses.ts'

const late_p95_ms_max = 1_000
const patience_ms = 13_000
const renewed_ms = 4_000
const names_at_once = [16, 256]

export const silentDns: Attack = {
  name: 'silent-dns',
  about: 'has schedules fired at names whose DNS server never answers',
  engines: ['sqlite'],
  seconds_max: 90,
  missing: ownMounts,
  async run(lab) {
    // A resolv.conf of its own for the service, which names a DNS server that is silent about hang*.test.
    const resolv_conf = join(lab.folder(), 'resolv.conf')
    writeFileSync(resolv_conf, `nameserver ${await dnsServer(lab)}\n`)
    const mounted = `mount --bind ${resolv_conf} /etc/resolv.conf && exec "$@"`
    for (const count of names_at_once) {
      const service = await lab.service({ wrap: ['unshare', '-m', 'sh', '-c', mounted, 'sh'] })
      const good = await lab.good(service)
      const receiver = lab.receiver()
      const url = `http://pub.test:${new URL(await receiver.url()).port}`
      const before = await lateness(good.tenant, receiver, { count: 10, gap_ms: 100, patience_ms, url })
      const attacker = await lab.tenant(service, 'pro', 'attacker')
      await lab.during(
        `${count} names with a silent DNS server`,
        good,
        async () => {
          let ended = false
          const attack = keepHanging(attacker, count, () => ended)
          await Bun.sleep(1_500)
          const late = await lateness(good.tenant, receiver, { count: 50, gap_ms: 200, patience_ms, url })
          ended = true
          const counts = await attack
          expectMade(counts, count)
          return {
            late,
            note: `late before p50/p95 ${before.p50}/${before.p95} ms; attacker got ${statusesText(counts)}`,
          }
        },
        { late_p95_ms: late_p95_ms_max },
      )
      await good.probe.stop()
      await receiver.stop()
      await service.stop()
    }
  },
}

/** As many schedules at once, each for a name of its own, again and again. Answers how often each status came. */
async function keepHanging(
  attacker: Tenant,
  count: number,
  ended: () => boolean,
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  const run = crypto.randomUUID().slice(0, 8)
  for (let round = 0; !ended(); round++) {
    const began = performance.now()
    const made = Array.from({ length: count }, (_, i) =>
      attacker.status('POST', '/v1/schedules', {
        callback_url: `http://hang-${run}-${round}-${i}.test:8080/`,
        callback_payload: {},
        fire_at: '2020-01-01T00:00:00Z',
      }),
    )
    for (const status of await Promise.all(made)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    while (!ended() && performance.now() - began < renewed_ms) await Bun.sleep(100)
  }
  return statuses
}

function dnsServer(lab: Lab): Promise<string> {
  const told = Promise.withResolvers<string>()
  const child = startChild([process.execPath, join(import.meta.dir, 'lib/dns-process.ts')], {
    onMessage: (address) => told.resolve(address as string),
  })
  lab.onEnd(async () => child.kill('SIGKILL'))
  void child.exited.then((status) => told.reject(new Error(`the DNS server ended with ${status}`)))
  return told.promise
}

runAlone(import.meta, silentDns.name)
