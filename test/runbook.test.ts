// docs/runbook.md, done section by section as it is printed, in a fresh checkout.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf, Checkout, type Program } from './support/checkout.ts'
import { test_ms_max } from './support/patience.ts'

const checkout = new Checkout()
afterAll(() => checkout.clean())

const blocks = blocksOf('docs/runbook.md', 'sh')
const [before, reset, with_new_key, restore, look, release, room, remove_old, vacuum, rotate, reseal, again] =
  blocks
const secret = { BACKUP_PASSPHRASE: 'correct horse battery staple' }

let service: Program | null = null
let admin_key = ''

async function start(environment = ''): Promise<void> {
  service = await checkout.serve(`${environment} npm start`)
}

async function stop(): Promise<void> {
  await service!.interrupt()
}

async function ask(method: string, path: string, body?: object) {
  const answer = await fetch(checkout.url + path, {
    method,
    headers: { authorization: `Bearer ${admin_key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

function lines(printed: string): string[] {
  return printed.split('\n').filter((line) => line !== '' && !line.startsWith('>'))
}

test('the runbook has no other commands than those that run here', () => {
  expect(blocks).toHaveLength(12)
})

test(
  'before anything happens: a backup with its secrets, which is whole',
  async () => {
    await start()
    const made = await ask('POST', '/v1/tenants', { name: 'acme', owner_email: 'you@example.com' })
    expect(made.status).toBe(201)
    admin_key = made.body.admin_key
    expect(await checkout.run(before!)).toContain('The secrets are beside it.')
    expect(existsSync(join(checkout.folder, 'backup/waystation.db.secrets'))).toBe(true)
  },
  test_ms_max,
)

test(
  'a lost admin key: the old one ends, and the new one works',
  async () => {
    const printed = await checkout.run(`${reset}\n${with_new_key}\necho "$ADMIN_KEY" > new-key`)
    expect(printed).toContain('"name":"acme"')
    const old_key = admin_key
    admin_key = checkout.read('new-key').trim()
    expect(admin_key).toMatch(/^svc_adm_/)
    expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
    admin_key = old_key
  },
  test_ms_max,
)

test(
  'a lost disk: the backup is served, sends nothing until it is released, and every tenant gets a new key',
  async () => {
    await stop()
    rmSync(join(checkout.folder, 'data'), { recursive: true })
    expect(await checkout.run(restore!, secret)).toContain('restored: 1 tenants, in quarantine')
    await start()
    const seen = await checkout.run(look!)
    expect(seen).toContain('"quarantined_since":"')
    expect(seen).toContain('the database is whole')
    const released = lines(await checkout.run(release!))
    expect(
      released.find((line) =>
        line.endsWith(' keys ended; admin reset-admin-key --all gives every tenant a new one'),
      ),
    ).toBeTruthy()
    const [tenant_id, name, key] = released.at(-1)!.split('\t')
    expect([tenant_id, name]).toEqual([expect.stringMatching(/^ten_/), 'acme'])
    admin_key = key!
    expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
  },
  test_ms_max,
)

test(
  'a full disk: writes are refused until there is room, which removed backups and a vacuum make',
  async () => {
    await stop()
    await start('DISK_RESERVE=9007199254740991')
    const agent = { name: 'agent-one' }
    expect(await ask('POST', '/v1/agents', agent)).toMatchObject({
      status: 507,
      body: { error: { code: 'STORAGE_FULL' } },
    })
    expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
    expect(await checkout.run(room!)).toContain('rows of tenants')
    for (const name of ['second', 'third']) await checkout.run(`npm run admin -- backup backup/${name}.db`)
    await checkout.run(remove_old!)
    const kept = ['waystation', 'second', 'third'].map((name) =>
      existsSync(join(checkout.folder, `backup/${name}.db`)),
    )
    expect(kept).toEqual([false, true, true])
    await stop()
    expect(await checkout.run(vacuum!)).toMatch(/had \d+ bytes and has \d+/)
    await start()
    expect((await ask('POST', '/v1/agents', agent)).status).toBe(201)
  },
  test_ms_max,
)

test(
  'a leaked SECRET_KEY: another one seals everything, beside the service',
  async () => {
    const old_key = checkout.read('data/secret_key')
    expect((await ask('GET', '/v1/seal')).status).toBe(200)
    expect(await checkout.run(rotate!)).toContain('Restart the service')
    await stop()
    await start()
    const printed = await checkout.run(reseal!)
    expect(printed).toMatch(/\d+ secrets were sealed again: the new key alone is enough/)
    expect(printed).toContain('the database is whole')
    expect(checkout.read('data/secret_key')).not.toBe(old_key)
    expect(existsSync(join(checkout.folder, 'data/secret_key_previous'))).toBe(false)
    expect((await ask('GET', '/v1/seal')).status).toBe(200)
    expect(await checkout.run(again!, secret)).toContain('is whole')
    await stop()
    await start()
    expect((await ask('GET', '/v1/seal')).status).toBe(200)
    await stop()
  },
  test_ms_max,
)
