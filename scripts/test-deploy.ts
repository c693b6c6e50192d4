// `npm run test:deploy`: the programs that read the files of deploy/ judge them. One that is not installed is named, and its
// files are not tried; `--all` takes that for a failure. KUBECONFORM_SCHEMAS: where kubeconform finds the schemas of
// Kubernetes, when it cannot ask for them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Check {
  /** The claim, as a sentence about the file. */
  says: string
  /** The program that must be there. */
  program: string
  command: string[]
  /** True when the program must refuse. */
  refuses?: boolean
  /** Holds in what it prints: it may also succeed over nothing, or refuse for another reason. */
  prints?: RegExp
}

const root = join(import.meta.dir, '..')
const chart = 'deploy/helm/waystation'
const prometheus = 'deploy/prometheus'
/** As `systemd-analyze security` counts: ten times the exposure. */
const exposure_tenths_max = 20
const kubernetes = '1.33.0'
/** A helm of one's own build takes Kubernetes to be 1.20, which the chart refuses. */
const template = ['helm', 'template', '--kube-version', kubernetes]
const secrets = ['secrets.secretKey=0123456789abcdef', 'secrets.cronSecret=0123456789abcdef']
const postgres = ['database.engine=postgres', 'database.postgres.url=postgres://a:b@db/c', ...secrets]

/** Releases as people install them. */
const releases: Readonly<Record<string, string[]>> = {
  'one pod with SQLite': [],
  'SQLite with its own secrets, an ingress and a policy': [
    ...secrets,
    'ingress.enabled=true',
    'ingress.hosts[0]=waystation.example.com',
    'ingress.tls[0].secretName=tls',
    'networkPolicy.enabled=true',
    'config.PUBLIC_URL=https://waystation.example.com',
    'config.MEMORY_BUDGET=134217728',
  ],
  'three nodes on PostgreSQL': [...postgres, 'replicaCount=3', 'updateStrategy=RollingUpdate'],
  'nodes by load, with secrets that exist': [
    'database.engine=postgres',
    'database.postgres.existingSecret=db',
    'secrets.existingSecret=waystation-secrets',
    'autoscaling.enabled=true',
    'networkPolicy.enabled=true',
    'config.WORKERS=4',
    'serviceAccount.create=false',
    'extraPorts[0].name=metrics',
    'extraPorts[0].containerPort=9464',
  ],
}

const refused: Readonly<Record<string, { values: string[]; prints: RegExp }>> = {
  'several pods with SQLite': { values: ['replicaCount=2'], prints: /serves from one pod/ },
  'PostgreSQL without its URL': {
    values: ['database.engine=postgres', ...secrets],
    prints: /needs database\.postgres\.url/,
  },
  'PostgreSQL without secrets': {
    values: ['database.engine=postgres', 'database.postgres.url=postgres://a:b@db/c'],
    prints: /needs the same secrets/,
  },
  'a setting that the chart sets': {
    values: ['config.DATA_DIR=/tmp'],
    prints: /DATA_DIR is set by the chart/,
  },
  'a value that is none': { values: ['replicas=3'], prints: /replicas/ },
}

const scratch = mkdtempSync(join(tmpdir(), 'waystation-deploy-'))
const missing = new Set<string>()
let failed = 0
try {
  for (const check of checks()) judge(check)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
for (const program of missing) console.log(`not tried: ${program} is not installed`)
if (failed > 0 || (missing.size > 0 && process.argv.includes('--all'))) process.exit(1)

function checks(): Check[] {
  const unit = 'deploy/systemd/waystation.service'
  const security = ['security', '--offline=true', '--no-pager', `--threshold=${exposure_tenths_max}`]
  const composed = { POSTGRES_PASSWORD: 'a', SECRET_KEY: 'b', CRON_SECRET: 'c' }
  const env_file = join(scratch, 'env')
  writeFileSync(
    env_file,
    `${Object.entries(composed)
      .map((entry) => entry.join('='))
      .join('\n')}\n`,
  )
  const compose = (file: string): string[] => [
    ...['docker', 'compose', '--env-file', env_file, '--file', `deploy/compose/${file}`],
    ...['config', '--quiet'],
  ]
  return [
    {
      says: `the unit's exposure is at most ${exposure_tenths_max / 10}`,
      program: 'systemd-analyze',
      command: ['systemd-analyze', ...security, unit],
    },
    {
      says: 'the Caddyfile is valid',
      program: 'caddy',
      command: ['caddy', 'validate', '--adapter', 'caddyfile', '--config', 'deploy/compose/Caddyfile'],
    },
    ...[
      { says: 'the alert rules are valid', command: ['check', 'rules', `${prometheus}/alerts.yml`] },
      {
        says: 'the alert rules fire when they should',
        command: ['test', 'rules', `${prometheus}/alerts.test.yml`],
      },
      {
        says: 'the settings of Prometheus are valid',
        command: ['check', 'config', `${prometheus}/prometheus.yml`],
      },
    ].map(({ says, command }) => ({ says, program: 'promtool', command: ['promtool', ...command] })),
    ...['sqlite.yml', 'postgres.yml'].map((file) => ({
      says: `${file} is a Compose file`,
      program: 'docker compose',
      command: compose(file),
    })),
    { says: 'the chart has no fault', program: 'helm', command: ['helm', 'lint', '--strict', chart] },
    ...Object.entries(releases).flatMap(([name, values]) => checksOfRelease(name, values)),
    ...Object.entries(refused).map(([name, { values, prints }]) => ({
      says: `the chart refuses ${name}`,
      program: 'helm',
      command: [...template, chart, ...setting(values)],
      refuses: true,
      prints,
    })),
  ]
}

/** The manifests go into a folder, for those who know Kubernetes. */
function checksOfRelease(name: string, values: string[]): Check[] {
  const folder = mkdtempSync(join(scratch, 'release-'))
  const schemas = process.env.KUBECONFORM_SCHEMAS
  const location = schemas === undefined ? [] : ['-schema-location', schemas]
  return [
    {
      says: `the chart makes a release: ${name}`,
      program: 'helm',
      command: [...template, 'test', chart, '--output-dir', folder, ...setting(values)],
    },
    {
      says: `kubeconform accepts it: ${name}`,
      program: 'kubeconform',
      command: ['kubeconform', '-strict', '-summary', '-kubernetes-version', kubernetes, ...location, folder],
      prints: /^Summary: [1-9]/m,
    },
  ]
}

function setting(values: string[]): string[] {
  return values.flatMap((value) => ['--set', value])
}

function judge({ says, program, command, refuses = false, prints = /^/ }: Check): void {
  if (!isThere(program)) return void missing.add(program)
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: root })
  const holds = (exitCode === 0) !== refuses && prints.test(`${stdout}${stderr}`)
  if (!holds) failed++
  console.log(`${holds ? 'ok    ' : 'FAILED'}  ${says}`)
  if (!holds) console.log(`${command.join(' ')}\n${stdout}${stderr}`)
}

function isThere(program: string): boolean {
  const [name, plugin] = program.split(' ')
  if (Bun.which(name!) === null) return false
  return (
    plugin === undefined || Bun.spawnSync([name!, plugin, 'version'], { stderr: 'ignore' }).exitCode === 0
  )
}
