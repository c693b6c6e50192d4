// What agents stored, as the operator finds it in the console: the audit log and the key-value store.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  signIn,
  tabTo,
  themes,
  useRealTime,
  useService,
} from './support/console.ts'
import { becomes, until } from './support/patience.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()

const service = useService()

/** `entry` as JSON text, so that its digits arrive. */
async function append({ api_key }: TestTenant, entry: string): Promise<string> {
  const { status, body } = await service.ask('POST', '/v1/audit', {
    key: api_key,
    headers: { 'content-type': 'application/json' },
    body: entry,
  })
  expect(status).toBe(201)
  return body.id
}

async function put(key: string, path: string, value: string, ttl_seconds?: number): Promise<void> {
  const ttl = ttl_seconds === undefined ? '' : `, "ttl_seconds": ${ttl_seconds}`
  const { status } = await service.ask('PUT', `/v1/kv/${path}`, {
    key,
    headers: { 'content-type': 'application/json' },
    body: `{"value": ${value}${ttl}}`,
  })
  expect(status).toBe(200)
}

const actionsIn = (page: Page) =>
  page.locator('.window tbody:not([aria-hidden]) td:first-child').allInnerTexts()

async function someEntries(tenant: TestTenant): Promise<string[]> {
  const ids: string[] = []
  for (const entry of [
    '{"action": "import.started", "workflow_id": "night 17/ä"}',
    '{"action": "mail.sent", "actor": "mailer"}',
    '{"action": "import.finished", "workflow_id": "night 17/ä", "metadata": {"rows": 12345678901234567890, "b": 1.50, "b": 2}}',
  ]) {
    ids.push(await append(tenant, entry))
  }
  return ids
}

describe('The audit log', () => {
  test('is searched by filters that stand in the address', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/audit')
      await page.getByText('3 in all').waitFor()
      expect(await actionsIn(page)).toEqual(['import.finished', 'mail.sent', 'import.started'])
      await page.getByLabel('Actor').fill('mailer')
      await page.keyboard.press('Enter')
      await page.getByText('1 in all').waitFor()
      expect(await actionsIn(page)).toEqual(['mail.sent'])
      expect(page.url()).toBe(`${service.url}/console/audit?actor=mailer`)
      await page.getByLabel('Action begins with').fill('import')
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByText('No entry matches').waitFor()
      expect(page.url()).toBe(`${service.url}/console/audit?actor=mailer&action_prefix=import`)
      await page.getByRole('button', { name: 'Clear' }).click()
      await page.getByText('3 in all').waitFor()
      expect(page.url()).toBe(`${service.url}/console/audit`)
      expect(await page.getByLabel('Action begins with').inputValue()).toBe('')
      await page.getByLabel('Action begins with').fill('import.')
      await page.keyboard.press('Enter')
      await page.getByText('2 in all').waitFor()
      expect(await actionsIn(page)).toEqual(['import.finished', 'import.started'])
      await page.goto('/console/audit?action=import')
      await page.getByText('No entry matches').waitFor()
      await page.goto('/console/audit?action=mail.sent')
      await page.getByText('1 in all').waitFor()
      await page.getByRole('button', { name: 'All actions' }).click()
      await page.getByText('3 in all').waitFor()
      expect(page.url()).toBe(`${service.url}/console/audit`)
    })
  })

  test('is searched by agent, and each filter suggests what the log holds', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    await append({ ...tenant, ...other }, '{"action": "import.\\u202eevil"}')
    await append({ ...tenant, ...other }, '{"action": "order.paid", "actor": "cashier"}')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/audit')
      await page.getByText('5 in all').waitFor()
      const offered: [label: string, typed: string, wanted: string[]][] = [
        ['Action begins with', '', ['import.finished', 'import.started', 'mail.sent', 'order.paid']],
        ['Action begins with', 'import.s', ['import.started']],
        ['Agent', '', ['agent-one', 'agent-two']],
        ['Actor', '', ['agent-one', 'agent-two', 'cashier', 'mailer']],
        ['Workflow', 'night', ['night 17/ä']],
      ]
      for (const [label, typed, wanted] of offered) {
        const field = page.getByLabel(label, { exact: true })
        await field.focus()
        await field.fill(typed)
        const options = page.locator(`datalist#${await field.getAttribute('list')} option`)
        for (const [i, text] of wanted.entries()) {
          await page
            .locator(
              `datalist#${await field.getAttribute('list')} option:nth-child(${i + 1})[value="${text}"]`,
            )
            .waitFor({ state: 'attached' })
        }
        await becomes(async () => [label, typed, await options.count()], [label, typed, wanted.length])
        await field.fill('')
      }
      await page.getByLabel('Agent', { exact: true }).fill('agent-two')
      await page.keyboard.press('Enter')
      await page.getByText('2 in all').waitFor()
      expect(new URL(page.url()).search).toBe('?agent_id=agent-two')
      await page.getByRole('link', { name: 'order.paid' }).click()
      await page.getByRole('link', { name: 'All by this agent' }).waitFor()
    })
  })

  test('is searched by time, in the time zone of the reader', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    const options = { timezoneId: 'Asia/Kolkata' }
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/audit?from=2020-01-01T00:00:00.000Z')
        await page.getByText('3 in all').waitFor()
        expect(await page.getByLabel('From').inputValue()).toBe('2020-01-01T05:30')
        await page.getByLabel('Before').fill('2020-02-01T05:30')
        await page.getByRole('button', { name: 'Search' }).click()
        await page.getByText('No entry matches').waitFor()
        expect(new URL(page.url()).searchParams.get('to')).toBe('2020-02-01T00:00:00.000Z')
        expect(new URL(page.url()).searchParams.get('from')).toBe('2020-01-01T00:00:00.000Z')
      },
      options,
    )
  })

  test('is searched from a time to the second, as an address may have it', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/audit?from=2020-01-01T00:00:30.250Z')
      await page.getByText('3 in all').waitFor()
      await page.getByLabel('Actor').fill('mailer')
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByText('1 in all').waitFor()
      expect(new URL(page.url()).searchParams.get('from')).toBe('2020-01-01T00:00:30.250Z')
    })
  })

  test('says what is wrong with a filter that somebody wrote into the address', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/audit?from=yesterday')
        await page.getByText('That was refused.').waitFor()
        await page
          .getByRole('alert')
          .getByRole('listitem')
          .getByText(/^from must /)
          .waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
      },
      { expected: refusals(400) },
    )
  })

  test('is followed through a workflow, and shows metadata as it is stored', async () => {
    const tenant = await service.signUp()
    const [first, , last] = await someEntries(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/audit')
      await page.getByRole('link', { name: 'import.finished' }).click()
      await page.getByRole('link', { name: 'Follow this workflow' }).click()
      await page.getByText('2 in all').waitFor()
      expect(await actionsIn(page)).toEqual(['import.finished', 'import.started'])
      expect(page.url()).toBe(
        `${service.url}/console/audit/${last}?${new URLSearchParams({ workflow_id: 'night 17/ä' })}`,
      )
      expect(await page.locator('.tree li').allInnerTexts()).toEqual([
        'rows: 12345678901234567890',
        'b: 1.50',
        'b: 2',
      ])
      await page.getByRole('link', { name: 'Before, earlier' }).click()
      await page.getByRole('heading', { name: 'import.started' }).waitFor()
      await becomes(() => new URL(page.url()).pathname, `/console/audit/${first}`)
      await page.reload()
      await page.getByText('2 in all').waitFor()
      await page.getByRole('heading', { name: 'import.started' }).waitFor()
      expect(await page.getByLabel('Workflow').inputValue()).toBe('night 17/ä')
    })
  })

  test('tells of entries that came meanwhile, and shows them when one asks', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await signIn(page, tenant, '/console/audit')
      await page.getByText('3 in all').waitFor()
      await append(tenant, '{"action": "late"}')
      await page.clock.fastForward(6_000)
      await page.getByRole('button', { name: 'Show new entries' }).click()
      await page.getByText('4 in all').waitFor()
      expect((await actionsIn(page))[0]).toBe('late')
      await page.getByRole('button', { name: 'Refresh' }).waitFor()
    })
  })

  test('is loaded page by page and draws only the rows that can be seen, the focus among them', async () => {
    const tenant = await service.signUp()
    for (let i = 1; i <= 320; i += 1) await append(tenant, `{"action": "step ${i}"}`)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/audit')
      await page.getByText('100 loaded so far').waitFor()
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('200 loaded so far').waitFor()
      const table = page.getByRole('region', { name: 'Audit entries' })
      await page.getByRole('link', { name: 'step 320', exact: true }).focus()
      await table.evaluate((place) => place.scrollTo(0, 1e6))
      await page.getByText('300 loaded so far').waitFor()
      await table.evaluate((place) => place.scrollTo(0, 1e6))
      await page.getByText('320 in all').waitFor()
      await table.evaluate((place) => place.scrollTo(0, 1e6))
      await page.getByRole('link', { name: 'step 1', exact: true }).waitFor()
      expect((await actionsIn(page)).length).toBeLessThan(100)
      await becomes(() => page.getByRole('link', { name: 'step 320', exact: true }).count(), 0)
      // The row that had the focus is not drawn any more.
      await becomes(() => page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Audit entries')
      expect(await table.getByRole('table').getAttribute('aria-rowcount')).toBe('321')
      const last = page.getByRole('row', { name: /^step 1 / })
      expect(await last.getAttribute('aria-rowindex')).toBe('321')
      // Rows lie where their number says, whichever are drawn.
      const heights = await table.evaluate((place) => place.querySelector('table')!.offsetHeight)
      const head = await table.evaluate((place) => place.querySelector('thead')!.offsetHeight)
      expect(heights - head).toBe(320 * 36)
    })
  })
})

describe('The key-value store', () => {
  test('is browsed to a private namespace, by prefix, to a value with the digits that are stored', async () => {
    const tenant = await service.signUp()
    const { api_key } = tenant
    await put(api_key, 'state/other', '1')
    await put(api_key, '__agent.agent-one/a%2Fb%20%C3%A4', '{"big": 9007199254740993, "e": 1e400, "t": 1.10}')
    await put(api_key, '__agent.agent-one/zebra', 'null')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/kv')
      await page.getByRole('row', { name: '__agent.agent-one private agent-one' }).waitFor()
      await page.getByRole('row', { name: 'state all agents' }).waitFor()
      await page.getByRole('link', { name: '__agent.agent-one' }).click()
      await page.getByRole('link', { name: 'zebra' }).waitFor()
      await page.getByLabel('Keys that begin with').fill('a/')
      await page.waitForURL('**/console/kv/__agent.agent-one?prefix=a%2F')
      await page.getByRole('link', { name: 'a/b ä' }).click()
      await page.locator('.tree li').first().waitFor()
      expect(await page.locator('.tree li').allInnerTexts()).toEqual([
        'big: 9007199254740993',
        'e: 1e400',
        't: 1.10',
      ])
      expect(page.url()).toBe(`${service.url}/console/kv/__agent.agent-one/a%2Fb%20%C3%A4?prefix=a%2F`)
      await page.reload()
      await page.locator('.tree li').first().waitFor()
      await becomes(() => page.locator('.split-list tbody a').allInnerTexts(), ['a/b ä'])
    })
  })

  test('shows version and expiry, and commands that an agent can run as they are', async () => {
    const tenant = await service.signUp()
    useRealTime(service)
    await put(tenant.api_key, 'state/it%27s', '1')
    await put(
      tenant.api_key,
      'state/it%27s',
      '{"text": "it\'s $HOME `x` \\"y\\"", "n": 12345678901234567890}',
      3600,
    )
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, "/console/kv/state/it's")
      await page.getByRole('heading', { name: "it's" }).waitFor()
      await becomes(
        () => page.locator('.facts').innerText(),
        expect.stringMatching(/^Version\n2\nWritten\n[\s\S]*Expires\n5\d min \d\d s$/),
      )
      await page.getByText('Change or delete it').click()
      const command = (what: string) => page.getByRole('region', { name: what }).innerText()
      const putting = await command('Command that puts a value')
      const deleting = await command('Command that deletes the key')
      expect(await run(putting, tenant)).toContain('"version":3')
      const { text, headers } = await service.ask('GET', "/v1/kv/state/it's", { key: tenant.api_key })
      expect(text).toContain('"value":{"text": "it\'s $HOME `x` \\"y\\"", "n": 12345678901234567890}')
      expect(headers.get('etag')).toBe('"3"')
      // Made for version 2, which is not the latest any more.
      expect(await run(deleting, tenant)).toContain('VERSION_MISMATCH')
      await page.reload()
      await page.getByText('Change or delete it').click()
      expect(await run(await command('Command that deletes the key'), tenant)).toBe('')
    })
    const { status } = await service.ask('GET', "/v1/kv/state/it's", { key: tenant.api_key })
    expect(status).toBe(404)
  })

  test('copies a command without a character that a terminal would obey, and with the same value', async () => {
    const tenant = await service.signUp()
    // A shell that edits its line takes DEL for backspace: it would undo the quoting, and the rest would be run.
    await put(tenant.api_key, 'state/del', '{"text":\t"\'\u007f; touch pwned #\u009b\u202e\u200b"}')
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/kv/state/del')
        await page.getByText('Change or delete it').click()
        await page.getByRole('button', { name: 'Copy the command' }).first().click()
        await page.getByText('Copied the command.').waitFor()
        const command = (await page.evaluate('navigator.clipboard.readText()')) as string
        expect(command).not.toMatch(/[^\n\x20-\x7e]/)
        expect(await run(command, tenant)).toContain('"version":2')
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    )
    const { body } = await service.ask('GET', '/v1/kv/state/del', { key: tenant.api_key })
    expect(body.value).toEqual({ text: "'\u007f; touch pwned #\u009b\u202e\u200b" })
  })

  test('follows a large value as it is put, without loading it for nothing', async () => {
    const tenant = await service.signUp()
    const text = (letter: string) => JSON.stringify(letter.repeat(100_000))
    await put(tenant.api_key, 'state/large', text('a'))
    await put(tenant.api_key, 'state/large.other', '1')
    await chromium.visit(service.url, async (page) => {
      let [loads, looks] = [0, 0]
      page.on('request', (request) => {
        if (request.url().endsWith('/keys/large')) loads += 1
        if (request.url().endsWith('/keys?prefix=large&limit=1')) looks += 1
      })
      await page.clock.install()
      await signIn(page, tenant, '/console/kv/state/large')
      const version = page.locator('.facts > div', { hasText: 'Version' }).locator('dd')
      await becomes(() => version.innerText(), '1')
      // That it is large shows once it is there: it may be loaded twice until the first look.
      await until(() => looks > 0)
      const [before, looked] = [loads, looks]
      await page.clock.fastForward(5_000)
      await until(() => looks > looked)
      await put(tenant.api_key, 'state/large', text('b'))
      await page.clock.fastForward(5_000)
      await becomes(() => version.innerText(), '2')
      await page.locator('.split-detail .tree').getByText('bbb').waitFor()
      expect(loads).toBe(before + 1)
    })
  })

  test('opens a large value by its first level', async () => {
    const tenant = await service.signUp()
    const list = Array.from({ length: 12_000 }, (_, i) => `{"n": ${i}}`).join(',')
    await put(tenant.api_key, 'state/large', `{"list": [${list}]}`)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/kv/state/large')
      await page.getByRole('button', { name: 'list: 12,000 items' }).click()
      await page.getByRole('button', { name: 'Show 100 more of 12,000' }).waitFor()
      await becomes(() => page.locator('.tree li').count(), 102)
    })
  })

  test('says so when there is nothing, no such key, or no right to look', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/kv')
        await page.getByText('Nothing is stored').waitFor()
        await page.goto('/console/kv/state/absent')
        await page.getByText('This namespace is empty').waitFor()
        await page.getByText('There is no such thing here.').waitFor()
        await page.goto('/console/kv/__rl')
        await page.getByText('NAMESPACE_FORBIDDEN').waitFor()
      },
      { expected: refusals(404, 403) },
    )
  })
})

/** What a shell makes of a command that is shown. */
async function run(command: string, { api_key }: TestTenant): Promise<string> {
  const shell = Bun.spawn(['bash', '-c', command], {
    env: { ...process.env, AGENT_KEY: api_key },
    stderr: 'ignore',
  })
  return new Response(shell.stdout).text()
}

describe('Both pages', () => {
  test('are used on a narrow screen and by keyboard', async () => {
    const tenant = await service.signUp()
    await someEntries(tenant)
    await put(tenant.api_key, `state/${'long-'.repeat(60)}`, `{"${'name'.repeat(60)}": "${'v'.repeat(300)}"}`)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/audit')
        await page.getByText('3 in all').waitFor()
        expect(await overflow(page)).toBe(0)
        await tabTo(page, 'mail.sent')
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'mail.sent' }).waitFor()
        expect(await overflow(page)).toBe(0)
        await page.goto(`/console/kv/state/${'long-'.repeat(60)}`)
        await page.locator('.tree li').first().waitFor()
        await page.getByText('Change or delete it').click()
        expect(await overflow(page)).toBe(0)
      },
      narrow,
    )
  })

  test.each(themes)('are accessible in the %s theme', async (colorScheme) => {
    const tenant = await service.signUp()
    const [, , last] = await someEntries(tenant)
    await put(tenant.api_key, 'state/k', '{"a": [1, "text", null]}', 60)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/audit/${last}`)
        await page.locator('.tree').waitFor()
        await page.getByText('3 in all').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await page.goto('/console/kv')
        await page.getByRole('link', { name: 'state' }).waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await page.goto('/console/kv/state/k')
        await page.locator('.tree').waitFor()
        await page.getByText('Change or delete it').click()
        expect(await accessibilityFaults(page)).toEqual([])
      },
      { colorScheme },
    )
  })
})
