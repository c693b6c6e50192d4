// Keys that --save keeps: which profiles they take the place of.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bench, runInside } from './support/cli.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const bench = new Bench()
afterAll(() => bench.clean())

forEachService('agent rotate-key --save', (service) => {
  let folder: string
  let tenant: TestTenant

  beforeEach(async () => {
    folder = bench.folder()
    tenant = await service.signUp()
    await login('admin', tenant.admin_key)
    expect((await run(['agent', 'create', 'worker-7', '--save', 'worker', '--profile', 'admin'])).code).toBe(
      0,
    )
  })

  const run = (args: string[], stdin: string[] = []) =>
    runInside(args, {
      env: { XDG_CONFIG_HOME: folder },
      fetch: (url, init) => fetch(url, init),
      stdin: (async function* () {
        yield* stdin
      })(),
    })
  const login = async (name: string, key: string) => {
    const { code } = await run(['login', name, '--no-check', '--url', service.url], [key])
    expect([name, code]).toEqual([name, 0])
  }
  const rotate = (save: string, ...more: string[]) =>
    run(['agent', 'rotate-key', 'worker-7', '--profile', 'admin', '--save', save, ...more])
  const works = async (profile: string) =>
    (await run(['kv', 'list', 'state', '--profile', profile])).code === 0

  function keys(): Record<string, string> {
    const text = readFileSync(join(folder, 'waystation', 'profiles.json'), 'utf8')
    const { profiles } = JSON.parse(text) as { profiles: Record<string, { key: string }> }
    return Object.fromEntries(Object.entries(profiles).map(([name, { key }]) => [name, key]))
  }

  test('is refused before a key is made where the profile has the key of anything else', async () => {
    const other = await service.signUp()
    const made = await run(['key', 'create', '--profile', 'admin', '--save', 'approver'])
    expect(made.code).toBe(0)
    await login('cron', 'the-secret-of-a-cron')
    await login('colleague', tenant.api_key)
    await login('elsewhere', other.api_key)
    const before = keys()
    for (const name of ['admin', 'approver', 'cron', 'colleague', 'elsewhere']) {
      const { code, stdout, stderr } = await rotate(name)
      expect([code, stdout, stderr]).toEqual([
        2,
        '',
        `waystation: USAGE: Profile ${name} already exists, and its key would be lost. ` +
          `Next: Save this one under another name, or waystation logout ${name} first.\n`,
      ])
    }
    expect([keys(), await works('worker')]).toEqual([before, true])
  })

  test('puts the new key in the place of the one before, or under a name that is free', async () => {
    for (const name of ['worker', 'free']) {
      const before = keys()[name]
      expect((await rotate(name)).code).toBe(0)
      expect([keys()[name] === before, await works(name)]).toEqual([false, true])
    }
  })

  test('puts it in the place of an agent key that opens nothing any more', async () => {
    await run(['agent', 'rotate-key', 'worker-7', '--profile', 'admin'])
    expect(await works('worker')).toBe(false)
    expect((await rotate('worker')).code).toBe(0)
    expect(await works('worker')).toBe(true)
  })

  test('leaves a key alone that another command has saved meanwhile, and shows the new one', async () => {
    const fetching = globalThis.fetch
    const told = await runInside(
      ['agent', 'rotate-key', 'worker-7', '--profile', 'admin', '--save', 'worker', '--json'],
      {
        env: { XDG_CONFIG_HOME: folder },
        async fetch(url, init) {
          if (init.method === 'POST') await login('worker', tenant.api_key)
          return fetching(url, init)
        },
      },
    )
    expect([told.code, JSON.parse(told.stdout).api_key]).toEqual([1, expect.stringMatching(/^svc_agt_/)])
    expect(keys().worker).toBe(tenant.api_key)
  })
})
