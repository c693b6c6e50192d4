// The alert rules of deploy/: each has a driver that brings its condition about in a running service, and the expression of the
// rule is asked on both sides of its threshold. How long a condition lasts before its alert fires is in the unit tests of the
// rules, for promtool, which Prometheus brings along.

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dashboardText } from '../scripts/dashboard.ts'
import { Driven } from './support/alert-driven.ts'
import { drivers } from './support/alert-drivers.ts'
import { forEachDatabase } from './support/databases.ts'
import { promtool, scrape } from './support/metrics.ts'
import { test_ms_max } from './support/patience.ts'
import { on_citus } from './support/postgres.ts'
import { rules, rules_file, unitTests } from './support/prometheus.ts'
import { quick } from './support/quick.ts'
import { TestService } from './support/service.ts'

const folder = 'deploy/prometheus'

test('Each alert has a driver, and each driver its alert', () => {
  expect(Object.keys(drivers).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted())
  for (const { engines } of Object.values(drivers)) expect(engines.length).toBeGreaterThan(0)
})

/** Row-level security is always off there, and `backup` is refused. */
const not_on_citus = ['WaystationRowSecurityOff', 'WaystationBackupLate']

forEachDatabase('The condition of an alert holds when it is brought about, and not before:', (databases) => {
  const driven_here = rules.filter(({ alert }) => {
    const driver = drivers[alert]
    if (on_citus && not_on_citus.includes(alert)) return false
    return driver?.engines.includes(databases.engine) && !(quick && driver.slow)
  })
  test.each(driven_here)(
    '$alert',
    async (rule) => {
      const { drive, settings } = drivers[rule.alert]!
      const driven = new Driven(rule, settings)
      try {
        await driven.start(await databases.newUrl())
        await drive(driven)
      } finally {
        await driven.stop()
      }
      expect([driven.looks[0], driven.looks.includes(true)]).toEqual([false, true])
    },
    test_ms_max,
  )
})

describe('The rules, as these tests evaluate them,', () => {
  const found_of_cases = unitTests(`${folder}/alerts.test.yml`)
  test.each(found_of_cases)('are as promtool does: $query', ({ found, expected }) => {
    expect(found).toEqual(expected)
  })

  test('are in several cases, with alerts and without', () => {
    expect(new Set(found_of_cases.map(({ expected }) => expected.length > 0)).size).toBe(2)
  })
})

describe('The files of deploy/', () => {
  const dashboard = readFileSync('deploy/grafana/waystation.json', 'utf8')
  const page = readFileSync('docs/metrics.md', 'utf8')
  const shown = (JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }).panels
    .flatMap(({ targets = [] }) => targets)
    .map(({ expr }) => expr)

  test('choose and group by labels that their metrics have', () => {
    const rows = [...page.matchAll(/^\| `((?:waystation|process)_\w+)` \| \w+ \| (.*?) \|/gm)]
    const labels_of = new Map(rows.map(([, name, cell]) => [name!, [...cell!.matchAll(/\w+/g)].map(String)]))
    const wrong = [...rules.map(({ expr }) => expr), ...shown].flatMap((expr) => {
      const metrics = expr.match(/\b(?:waystation|process)_\w+/g) ?? []
      const theirs = metrics.flatMap((name) => labels_of.get(name.replace(/_(bucket|sum|count)$/, '')) ?? [])
      const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names]) =>
        names!.split(', '),
      )
      const chosen = [...expr.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)].map(([, name]) => name!)
      const known = [...theirs, 'instance', 'job', 'le']
      return [...grouped, ...chosen].filter((name) => !known.includes(name)).map((name) => `${name}: ${expr}`)
    })
    expect([labels_of.size > 30, wrong]).toEqual([true, []])
  })

  test('name only metrics that the service has', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'waystation-alerts-'))
    const service = new TestService({ METRICS: '127.0.0.1:0', BACKUP_EVERY: '6h', BACKUP_DIR: scratch })
    await service.start(`sqlite:${join(scratch, 'test.db')}`)
    const { names } = await scrape(service)
    await service.stop()
    rmSync(scratch, { recursive: true, force: true })
    const known = new Set([...names, 'waystation_workers', 'waystation_worker_restarts_total'])
    const used = (text: string) =>
      [...new Set(text.match(/\b(?:waystation|process)_[a-z_]+/g))].map((name) =>
        known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
      )
    const of_rules = rules.flatMap(({ expr }) => used(expr))
    const of_dashboard = shown.flatMap(used)
    expect([...of_rules, ...of_dashboard].filter((name) => !known.has(name))).toEqual([])
    expect(of_dashboard.length).toBeGreaterThan(15)
  })

  test('are up to date: `bun scripts/dashboard.ts` writes the dashboard', () => {
    expect(JSON.parse(dashboardText())).toEqual(JSON.parse(dashboard))
  })

  test('are described: each alert has its line in docs/metrics.md with its severity', () => {
    const shown = [...page.matchAll(/^\| `(Waystation\w+)` \| (page|ticket) \|/gm)].map(
      ([, ...cells]) => cells,
    )
    const text = readFileSync(rules_file, 'utf8')
    const said = [...text.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)].map(([, ...cells]) => cells)
    expect(shown).toEqual(said)
  })

  test(
    'are what promtool takes, and the unit tests of the rules pass',
    () => {
      if (promtool === null) return
      const checks = [
        ['check', 'rules', rules_file],
        ['check', 'config', `${folder}/prometheus.yml`],
        ['test', 'rules', `${folder}/alerts.test.yml`],
      ]
      for (const check of checks) {
        const { exitCode, stdout, stderr } = Bun.spawnSync([promtool, ...check])
        expect([check.join(' '), exitCode, exitCode === 0 ? '' : `${stdout}${stderr}`]).toEqual([
          check.join(' '),
          0,
          '',
        ])
      }
    },
    test_ms_max,
  )
})
