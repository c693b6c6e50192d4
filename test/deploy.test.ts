// The files in deploy/ agree with the service, with each other and with their schema. `npm run test:deploy` asks the programs
// that read them, and `npm run test:image` runs the image.

import { describe, expect, test } from 'bun:test'
import Ajv from 'ajv'
import { YAML } from 'bun'
import { limits } from '../src/base/limit.ts'
import { routes } from '../src/features.ts'
import '../src/serve.ts' // declares the limits of a stop
import { settings } from '../src/settings.ts'
import { runInside } from './support/cli.ts'
import { files, textOf } from './support/source.ts'

type Values = Record<string, unknown>

interface ComposeService {
  image: string
  environment?: Record<string, string>
  read_only?: boolean
  stop_grace_period?: string
  cap_drop?: string[]
  security_opt?: string[]
  ports?: string[]
  volumes?: string[]
}

const known = Object.keys(settings)
const stop_steps = ['stop.drain', 'stop.counts', 'stop.close']
/** Longer than all steps of a stop, and than a supervisor waits for a worker before it kills it. */
const stop_seconds_min = 1 + Math.max(seconds(...stop_steps), seconds('workers.stop_ms'))
const compose_files = ['deploy/compose/sqlite.yml', 'deploy/compose/postgres.yml']
const chart = 'deploy/helm/waystation'

const dockerfile = textOf('deploy/docker/Dockerfile')
const unit = textOf('deploy/systemd/waystation.service')

describe('the image', () => {
  test('runs as a user without rights, by number, and has settings of the service alone', () => {
    const [, final = ''] = dockerfile.split(/^FROM \$\{RUNTIME_BASE\}/m)
    expect(final).toMatch(/^USER [1-9]\d+:[1-9]\d+$/m)
    const [, lines = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(final)!
    const names = [...lines.matchAll(/(\w+)=/g)].map(([, name]) => name!)
    expect(names).toEqual(['HOST', 'DATA_DIR'])
    expect(names.filter((name) => !known.includes(name))).toEqual([])
    expect(final).toContain(`EXPOSE ${settings.PORT.initial}\n`)
  })

  test('asks its own service for its health', async () => {
    const [, command = ''] = /^HEALTHCHECK .*\\\n {2}CMD (\[.*\])$/m.exec(dockerfile)!
    const [program, ...args] = JSON.parse(command) as string[]
    const [, entry = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)!
    expect([program]).toEqual(JSON.parse(entry))
    expect(args.slice(0, 3)).toEqual(['health', '--local', '--live'])
    const [code, asked] = await asksFor(args, { HOST: '0.0.0.0', PORT: '9000' })
    expect([code, asked]).toEqual([0, [['http://127.0.0.1:9000/livez', null]]])
  })

  const locals: [environment: Record<string, string>, url: string][] = [
    [{}, 'http://127.0.0.1:8420'],
    [{ PORT: '9000' }, 'http://127.0.0.1:9000'],
    [{ HOST: '0.0.0.0', PORT: ' 9000 ' }, 'http://127.0.0.1:9000'],
    [{ HOST: '::' }, 'http://[::1]:8420'],
    [{ HOST: '::1' }, 'http://[::1]:8420'],
    [{ HOST: '10.1.2.3', WAYSTATION_KEY: 'svc_agt_x' }, 'http://10.1.2.3:8420'],
  ]
  test.each(locals)('health --local asks the service of %j, without a key', async (env, url) => {
    expect(await asksFor(['health', '--local'], env)).toEqual([0, [[`${url}/readyz`, null]]])
  })

  test('is made of folders that are there, and leaves out what npm leaves out', () => {
    const lines = textOf('deploy/docker/Dockerfile.dockerignore').split('\n')
    const taken = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    expect(
      taken.filter((name) => !files.some((file) => file === name || file.startsWith(`${name}/`))),
    ).toEqual([])
    const { files: packed } = JSON.parse(textOf('package.json')) as { files: string[] }
    // npm takes what is named and leaves out what has a mark; here it is the other way around.
    const marked = packed.map((name) => (name.startsWith('!') ? name.slice(1) : `!${name}`))
    expect(marked.filter((line) => !lines.includes(line))).toEqual([])
  })
})

describe.each(compose_files)('%s', (file) => {
  const { services } = YAML.parse(textOf(file)) as { services: Record<string, ComposeService> }
  const nodes = Object.entries(services).filter(([, { image }]) => image.includes('waystation:'))

  test('gives the service settings that it has', () => {
    expect(nodes.length).toBeGreaterThan(0)
    for (const [, { environment }] of nodes) {
      expect(Object.keys(environment!).filter((name) => !known.includes(name))).toEqual([])
    }
  })

  test('gives it the time of a stop', () => {
    for (const [, { stop_grace_period }] of nodes) {
      expect(Number.parseInt(stop_grace_period!, 10)).toBeGreaterThanOrEqual(stop_seconds_min)
    }
  })

  test('leaves it no right that it does not need', () => {
    for (const [, { read_only, cap_drop, security_opt }] of nodes) {
      expect({ read_only, cap_drop, security_opt }).toEqual({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      })
    }
  })

  test('publishes on loopback alone', () => {
    const ports = Object.values(services).flatMap(({ ports = [] }) => ports)
    expect(ports).toHaveLength(1)
    expect(ports[0]).toMatch(/^127\.0\.0\.1:/)
  })

  test('mounts files that are there', () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes)
    const paths = mounted
      .filter((volume) => volume.startsWith('./'))
      .map((volume) => volume.split(':')[0]!.slice(2))
    expect(paths.filter((path) => !files.includes(`deploy/compose/${path}`))).toEqual([])
  })
})

describe('deploy/compose/', () => {
  test('names in env.example what its files read', () => {
    const read = compose_files.flatMap((file) =>
      [...textOf(file).matchAll(/\$\{(\w+)/g)].map(([, name]) => name!),
    )
    const named = [...textOf('deploy/compose/env.example').matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(
      ([, name]) => name!,
    )
    expect([...new Set(read)].toSorted()).toEqual(named.toSorted())
  })

  test('has a proxy before all nodes, which asks whether each is ready', () => {
    const { services } = YAML.parse(textOf('deploy/compose/postgres.yml')) as { services: Values }
    const nodes = Object.keys(services).filter((name) => name.startsWith('node'))
    const caddyfile = textOf('deploy/compose/Caddyfile')
    expect(nodes).toHaveLength(3)
    expect(caddyfile).toContain(
      `{$NODES:${nodes.map((node) => `${node}:${settings.PORT.initial}`).join(' ')}}`,
    )
    const [, path] = /^\s*health_uri (\S+)$/m.exec(caddyfile)!
    expect(pathsOfRoutes()).toContain(path!)
  })
})

describe('the unit of systemd', () => {
  test('gives the service settings that it has, and the time of a stop', () => {
    const names = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) =>
      line!.split(' ').map((part) => part.split('=')[0]!),
    )
    expect(names).toContain('DATA_DIR')
    expect(names.filter((name) => !known.includes(name))).toEqual([])
    expect(Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)![1])).toBeGreaterThanOrEqual(stop_seconds_min)
  })

  test('goes on when one of its processes runs out of memory: systemd would stop all of them', () => {
    expect(unit).toMatch(/^OOMPolicy=continue$/m)
  })

  test('lets it lower the priority of its backups, and shows how their folder is made writable', () => {
    const filters = [...unit.matchAll(/^SystemCallFilter=(.*)$/gm)].map(([, filter]) => filter)
    expect(filters).toEqual(['@system-service', '~@privileged @resources', 'setpriority'])
    expect(unit).toMatch(/^ProtectSystem=strict$/m)
    expect(unit).toMatch(/^#ReadWritePaths=\/\S+$/m)
    expect(textOf('docs/configuration.md')).toMatch(/^### BACKUP_DIR\n\n[^#]*`ReadWritePaths=`/m)
  })

  test('runs as the user that its sysusers file makes', () => {
    const [, user] = /^User=(\w+)$/m.exec(unit)!
    expect(textOf('deploy/systemd/waystation.sysusers')).toStartWith(`u ${user} `)
  })
})

describe('the Helm chart', () => {
  const values = YAML.parse(textOf(`${chart}/values.yaml`)) as Values
  const schema = JSON.parse(textOf(`${chart}/values.schema.json`)) as Values
  const accepts = new Ajv({ strict: false }).compile(schema)

  test('accepts its own values, and says a type for each', () => {
    expect([accepts(values), accepts.errors]).toEqual([true, null])
    const typed = Object.keys((schema.properties as Values) ?? {})
    expect(Object.keys(values).filter((name) => !typed.includes(name))).toEqual([])
  })

  const refused: [what: string, values: Values][] = [
    ['a value that is none', { replicas: 3 }],
    ['an engine that is none', { database: { engine: 'mysql' } }],
    ['a URL of another database', { database: { postgres: { url: 'mysql://db' } } }],
    ['a short SECRET_KEY', { secrets: { secretKey: 'short' } }],
    ['a setting in small letters', { config: { public_url: 'http://a' } }],
  ]
  test.each(refused)('refuses %s', (_, given) => {
    expect(accepts(given)).toBe(false)
  })

  test('reads no value that it does not have', () => {
    const templates = files.filter((file) => file.startsWith(`${chart}/templates/`)).map(textOf)
    const read = templates.flatMap((text) =>
      [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path]) => path!),
    )
    expect(read.length).toBeGreaterThan(50)
    const missing = [...new Set(read)].filter((path) => valueAt(values, path.split('.')) === undefined)
    expect(missing).toEqual([])
  })

  test('gives the service settings that it has, asks paths that it has, and leaves time to drain', () => {
    const helpers = textOf(`${chart}/templates/_helpers.tpl`)
    const set = [...helpers.matchAll(/^- name: ([A-Z_]+)$/gm)].map(([, name]) => name!)
    const listed = /list ("HOST".*) }}/.exec(helpers)![1]!
    const own = [...listed.matchAll(/"(\w+)"/g)].map(([, name]) => name!)
    const settings_named = [...set, ...own, ...Object.keys(values.config as Values)]
    expect(settings_named.filter((name) => !known.includes(name))).toEqual([])
    const probed = [...helpers.matchAll(/httpGet: { path: (\S+),/g)].map(([, path]) => path!)
    expect(probed).toEqual(['/livez', '/livez', '/readyz'])
    expect(probed.filter((path) => !pathsOfRoutes().includes(path))).toEqual([])
    const { terminationGracePeriodSeconds, preStopSeconds } = values as Record<string, number>
    expect(terminationGracePeriodSeconds! - preStopSeconds!).toBeGreaterThanOrEqual(stop_seconds_min)
  })

  test('gives no token, no root and no writable root file system to its pods', () => {
    for (const file of ['_helpers.tpl', 'tests/ready.yaml']) {
      const text = textOf(`${chart}/templates/${file}`)
      for (const line of [
        'automountServiceAccountToken: false',
        'enableServiceLinks: false',
        'runAsNonRoot: true',
        'allowPrivilegeEscalation: false',
        'readOnlyRootFilesystem: true',
        'drop: [ALL]',
        'type: RuntimeDefault',
      ]) {
        expect([file, text.split(line).length]).toEqual([file, 2])
      }
    }
  })
})

/** The exit code of a command in this environment, and each call that it made with its key. */
async function asksFor(args: string[], env: Record<string, string>) {
  const asked: [url: string, key: string | null][] = []
  const { code } = await runInside(args, {
    env,
    fetch: async (url, { headers }) => {
      asked.push([url, new Headers(headers as Record<string, string>).get('authorization')])
      return Response.json({ status: 'alive' })
    },
  })
  return [code, asked] as const
}

function pathsOfRoutes(): string[] {
  return routes.map(({ route }) => route.path)
}

function valueAt(values: unknown, [name, ...rest]: string[]): unknown {
  if (name === undefined) return values
  return typeof values === 'object' && values !== null ? valueAt((values as Values)[name], rest) : undefined
}

/** The sum of these limits of time. */
function seconds(...names: string[]): number {
  return names.reduce((sum, name) => sum + limits.get(name)!.value, 0) / 1_000
}
