// `npm run test:image -- <image>`: runs an image as deploy/compose/sqlite.yml does. `--engine docker|podman|buildah`
// takes that one. On Linux, because it looks at processes.

import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../test/support/ports.ts'
import { type Container, engineOf } from './deploy/containers.ts'
import { mainJob, type Running } from './deploy/main-job.ts'

/** The user of the image: deploy/docker/Dockerfile. */
const image_user = 65_532

const { values, positionals } = parseArgs({
  options: { engine: { type: 'string' } },
  allowPositionals: true,
})
const [image] = positionals
if (image === undefined) throw new Error('npm run test:image -- <image>')

const engine = engineOf(values.engine)
const port = String(freePort())
const data = mkdtempSync(join(tmpdir(), 'waystation-image-'))
chownSync(data, image_user, image_user)
const container: Container = { image, data, env: { HOST: '127.0.0.1', PORT: port } }
try {
  console.log(`${image} under ${engine.name}`)
  for (const line of await mainJob(`http://127.0.0.1:${port}`, start)) console.log(`ok  ${line}`)
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
