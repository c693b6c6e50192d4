// Redocly CLI and Spectral judge openapi.json by their recommended rules. A finding fails the run unless
// scripts/check-openapi.json excuses it by name, and so does an excuse that nothing met. Needs an npm registry: `npm test` does not
// run it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import excused from './check-openapi.json' with { type: 'json' }

const document = join(import.meta.dir, '../openapi.json')

interface Finding {
  tool: string
  rule: string
  /** `#/paths/~1livez/get`; the beginning of it in an excuse. */
  at: string
  message: string
}

interface RedoclyReport {
  problems: { ruleId: string; message: string; location: { pointer?: string }[] }[]
}

interface SpectralFinding {
  code: string
  message: string
  path: (string | number)[]
}

/** The report of a tool, which ends with 1 when it has found something. */
function reported(command: string[], cwd: string): unknown {
  const { stdout, stderr } = Bun.spawnSync(['npx', '--yes', ...command], { cwd })
  try {
    return JSON.parse(stdout.toString())
  } catch {
    throw new Error(`${command[0]} has no report: ${stdout}${stderr}`)
  }
}

function byRedocly(folder: string): Finding[] {
  writeFileSync(join(folder, 'redocly.yaml'), 'extends: [recommended]\n')
  const command = ['@redocly/cli@2.77.0', 'lint', document, '--format=json', '--config=redocly.yaml']
  const { problems } = reported([...command, '--max-problems=1000'], folder) as RedoclyReport
  return problems.map(({ ruleId: rule, message, location }) => ({
    tool: 'redocly',
    rule,
    at: location[0]?.pointer ?? '#/',
    message,
  }))
}

function bySpectral(folder: string): Finding[] {
  writeFileSync(join(folder, 'spectral.yaml'), 'extends: ["spectral:oas"]\n')
  const command = ['@stoplight/spectral-cli@6.16.3', 'lint', document, '--format=json', '--quiet']
  const found = reported([...command, '--ruleset=spectral.yaml'], folder) as SpectralFinding[]
  return found.map(({ code, message, path }) => ({
    tool: 'spectral',
    rule: code,
    at: `#/${path.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`,
    message,
  }))
}

const folder = mkdtempSync(join(tmpdir(), 'waystation-check-'))
try {
  const found = [...byRedocly(folder), ...bySpectral(folder)]
  const covers = (excuse: (typeof excused)[number], { tool, rule, at }: Finding) =>
    excuse.tool === tool && excuse.rule === rule && at.startsWith(excuse.at)
  const left = found.filter((finding) => !excused.some((excuse) => covers(excuse, finding)))
  const unmet = excused.filter((excuse) => !found.some((finding) => covers(excuse, finding)))
  for (const { tool, rule, at, message } of left) console.error(`${tool} ${rule} ${at}: ${message}`)
  for (const { tool, rule, at } of unmet) console.error(`nothing meets the excuse ${tool} ${rule} ${at}`)
  const { components, paths } = JSON.parse(readFileSync(document, 'utf8'))
  const [schemas, all] = [components.schemas, paths].map((part) => Object.keys(part).length)
  console.log(
    `${all} paths, ${schemas} schemas: ${found.length - left.length} findings, all excused by name; ${left.length} not`,
  )
  process.exitCode = left.length + unmet.length > 0 ? 1 : 0
} finally {
  rmSync(folder, { recursive: true, force: true })
}
