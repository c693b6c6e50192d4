import type { Attack, Lab } from './lib/lab.ts'
import { namespaces } from './lib/needs.ts'
import type { Tenant } from './lib/service.ts'

const disk_mb = 300
const value_characters = 250_000
const settled_ms = 1_500

export const fullDisk: Attack = {
  name: 'full-disk',
  about: `fills a disk of ${disk_mb} MB`,
  engines: ['sqlite'],
  seconds_max: 90,
  missing: namespaces,
  async run(lab) {
    const service = await lab.service(onSmallDisk(lab, disk_mb))
    const good = await lab.good(service)
    const tenant = await lab.tenant(service, 'pro', 'attacker')
    const acknowledged: number[] = []
    let refusals = 0
    await lab.during('filling it', good, async () => {
      for (let i = 0; i < (disk_mb * 1e6) / value_characters + 100 && refusals < 20; i++) {
        const status = await put(tenant, i)
        if (status === 200) acknowledged.push(i)
        else refusals += 1
      }
      return `${acknowledged.length} puts taken, ${refusals} refused`
    })
    lab.check('puts are refused in the end', refusals > 0, `${refusals} refused`)
    await Bun.sleep(settled_ms)
    const ready = await fetch(`${service.url}/readyz`)
    const reason = await ready.text()
    lab.check(
      'it is not ready and says why',
      ready.status === 503 && /disk|space/i.test(reason),
      `${ready.status} ${reason}`,
    )
    const [removed, kept] = [acknowledged.slice(0, 20), acknowledged.slice(20)]
    const statuses: number[] = []
    for (const i of removed) statuses.push(await tenant.status('DELETE', `/v1/kv/ns/k${i}`))
    const refused = statuses.filter((status) => status >= 300)
    lab.bound(
      'deletes work on a full disk',
      { 'refused deletes': [refused.length, 0] },
      [...new Set(refused)].join(', '),
    )
    let lost = 0
    for (const i of kept) if ((await tenant.status('GET', `/v1/kv/ns/k${i}`)) !== 200) lost += 1
    lab.bound('every acknowledged put is there', { lost: [lost, 0] }, `${kept.length} read again`)
    await service.stop()
    await startOnFullDisk(lab)
  },
}

const tiny_disks_kb = [8, 40, 100, 200, 400]

async function startOnFullDisk(lab: Lab): Promise<void> {
  for (const kilobytes of tiny_disks_kb) {
    const { child, said, printed } = await lab.spawn(onSmallDisk(lab, kilobytes / 1_000))
    await Promise.race([child.exited, Bun.sleep(4_000)])
    await Bun.sleep(100)
    const told = said().trim()
    const serves = printed().includes('is ready')
    const note = serves ? 'it serves' : told
    lab.check(
      `a start on a disk of ${kilobytes} kB says that it is full`,
      serves || /full|space/i.test(told),
      note,
    )
  }
}

/** A file system of its own in the service's own mounts, which is gone with it. */
function onSmallDisk(lab: Lab, megabytes: number) {
  const folder = lab.folder()
  const mount = `mount -t tmpfs -o size=${Math.round(megabytes * 1_000)}k tmpfs '${folder}' && cd '${folder}' && exec "$@"`
  return {
    folder,
    database_url: `sqlite:${folder}/waystation.db`,
    wrap: ['unshare', '-m', 'sh', '-c', mount, 'sh'],
  }
}

function put(tenant: Tenant, i: number): Promise<number> {
  return tenant.status('PUT', `/v1/kv/ns/k${i}`, { value: 'z'.repeat(value_characters) })
}
