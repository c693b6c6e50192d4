// `npm run test:image -- <image>`: runs an image as deploy/compose/sqlite.yml does. `--engine docker|podman|buildah`
// takes that one. On Linux, because it looks at processes.

import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../test/support/ports.ts'
import { type Container, engineOf } from './deploy/containers.ts'
import { mainJob, type Running } from './deploy/main-job.ts'
import { stop } from './needed.ts'

/** The user of the image: deploy/docker/Dockerfile. */
const image_user = 65_532

const { values, positionals } = parseArgs({
  options: { engine: { type: 'string' } },
  allowPositionals: true,
})
const [image] = positionals
if (image === undefined) stop('npm run test:image needs an image: npm run test:image -- <image>')

const engine = engineOf(values.engine)
const port = String(freePort())
const data = mkdtempSync(join(tmpdir(), 'waystation-image-'))
chownSync(data, image_user, image_user)
const container: Container = { image, data, env: { HOST: '127.0.0.1', PORT: port } }
try {
  console.log(`${image} under ${engine.name}`)
  for (const line of await mainJob(`http://127.0.0.1:${port}`, start, rightsOf)) console.log(`ok  ${line}`)
} finally {
  engine.clean()
  rmSync(data, { recursive: true, force: true })
}

/** Every start is asked for its health too, by the command of the image. */
function start(): Running {
  const running = engine.start(container)
  return {
    ...running,
    async end(signal) {
      const code = engine.health(container)
      console.log(`ok  the health check of the image ends with ${code}`)
      if (code !== 0) throw new Error('the health check fails')
      return running.end(signal)
    },
  }
}

/** Throws unless the process is the user of the image, without rights, on a read-only root file system. */
function rightsOf(pid: number): string {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const fieldOf = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status)?.[1]
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')
  const root = mounts.map((line) => line.split(' ')).find(([, , , , place]) => place === '/')
  const found = {
    user: fieldOf('Uid'),
    capabilities: Number(`0x${fieldOf('CapEff')}`),
    new_privileges: fieldOf('NoNewPrivs') === '0',
    root: root?.[5]?.split(',').includes('ro') ? 'read-only' : 'writable',
  }
  const wanted = { user: String(image_user), capabilities: 0, new_privileges: false, root: 'read-only' }
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`it runs with ${JSON.stringify(found)}`)
  return `started as user ${image_user} without rights, on a read-only root`
}
