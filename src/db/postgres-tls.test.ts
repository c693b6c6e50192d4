// TLS to PostgreSQL, as libpq's documentation says of each sslmode (section "SSL Support").

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPostgres } from '../../test/support/databases.ts'
import { test_ms_max, until } from '../../test/support/patience.ts'
import { administer, type Cluster, startCluster } from '../../test/support/postgres.ts'
import { certificate, certificate_pem } from '../../test/support/receiver.ts'
import { TestService } from '../../test/support/service.ts'
import { systemClock } from '../base/clock.ts'
import { openPostgres } from './postgres.ts'

onPostgres('PostgreSQL with a certificate for 127.0.0.1', () => {
  let cluster: Cluster
  let port: string
  let folder: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'waystation-tls-'))
    writeFileSync(join(folder, 'authority.pem'), certificate_pem)
    cluster = await startCluster({ initdb_flags: ['--auth=scram-sha-256'] })
    port = new URL(cluster.base_url).port
  }, test_ms_max)
  afterAll(async () => {
    await cluster.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** `ca`: with the file of the authority. */
  const urlOf = (host: string, sslmode: string | null, ca = false) => {
    const url = new URL(`postgres://postgres:postgres@${host}:${port}/postgres`)
    if (sslmode) url.searchParams.set('sslmode', sslmode)
    if (ca) url.searchParams.set('sslrootcert', join(folder, 'authority.pem'))
    return url.href
  }

  async function encrypt(): Promise<void> {
    const { uid, gid } = statSync(cluster.data_dir)
    const { cert, key } = certificate()
    for (const [name, text] of [
      ['server.crt', cert],
      ['server.key', key],
    ] as const) {
      const file = join(cluster.data_dir, name)
      writeFileSync(file, text)
      chownSync(file, uid, gid)
      chmodSync(file, 0o600)
    }
    await setTls('on')
  }

  async function setTls(wanted: 'on' | 'off'): Promise<void> {
    await administer(cluster.base_url, `alter system set ssl = ${wanted}`)
    await administer(cluster.base_url, 'select pg_reload_conf()')
    // As a new connection finds it.
    await until(async () => (await administer(cluster.base_url, 'show ssl', 'postgres'))[0]!.ssl === wanted)
  }

  /** True and false: whether the connections of a service are encrypted, the one that listens included. Text: why it did not start. */
  async function encryptedAt(url: string): Promise<unknown> {
    const service = new TestService({ SECRET_KEY: 'one for all that start here' })
    try {
      await service.start(url)
    } catch (error) {
      return (error as Error).message
    }
    try {
      await service.signUp()
      const rows = await administer(
        cluster.base_url,
        `select distinct application_name as name, ssl from pg_stat_ssl join pg_stat_activity using (pid)
          where application_name like 'waystation%' order by 1`,
      )
      expect(rows.map(({ name }) => name)).toEqual(['waystation', 'waystation listen'])
      const encrypted = new Set(rows.map(({ ssl }) => ssl))
      return encrypted.size === 1 ? [...encrypted][0] : rows
    } finally {
      await service.stop()
    }
  }

  test.each(['require', 'verify-ca', 'verify-full'])('%s does not start without TLS', async (sslmode) => {
    await setTls('off')
    const refused = openPostgres(urlOf('127.0.0.1', sslmode), { clock: systemClock })
    await expect(refused).rejects.toThrow('Server does not support SSL')
  })

  const untrusted = expect.stringMatching(/unable to verify the first certificate|self.signed certificate/)
  const misnamed = expect.stringContaining("does not match certificate's altnames")
  test.each([
    ['127.0.0.1', null, false, false],
    ['127.0.0.1', 'disable', false, false],
    ['127.0.0.1', 'prefer', false, true],
    ['localhost', 'require', false, true],
    ['127.0.0.1', 'verify-ca', false, untrusted],
    ['localhost', 'verify-ca', true, true],
    ['127.0.0.1', 'verify-full', false, untrusted],
    ['127.0.0.1', 'verify-full', true, true],
    ['localhost', 'verify-full', true, misnamed],
  ])('%s, sslmode %p, its authority known: %p', async (host, sslmode, ca, encrypted) => {
    await encrypt()
    expect(await encryptedAt(urlOf(host, sslmode, ca))).toEqual(encrypted)
  })

  test('channel_binding=require takes a server that proves with its certificate that it knows the password', async () => {
    await encrypt()
    expect(await encryptedAt(`${urlOf('127.0.0.1', 'require')}&channel_binding=require`)).toBe(true)
  })
})
