// An image as a running container: by Docker or Podman where there is one, and otherwise by Buildah, which only unpacks it.
// All of them give it a read-only root, a folder at /data, no capabilities and the network of this machine.

import { readFileSync } from 'node:fs'
import { stop } from '../needed.ts'
import { lastChild, type Running, type Signal } from './main-job.ts'

export interface Container {
  image: string
  /** The folder at /data. */
  data: string
  env: Readonly<Record<string, string>>
}

export interface Engine {
  name: string
  start(container: Container): Running
  /** The health check of the image, inside the container that `start` made last: its exit code. */
  health(container: Container): number
  clean(): void
}

interface ImageConfig {
  Env?: string[]
  Entrypoint?: string[]
  Cmd?: string[]
  User?: string
  Healthcheck?: { Test?: string[] }
}

/** Ends with 1 where what was asked for, or each of them, does not work. */
export function engineOf(asked: string | undefined): Engine {
  const found = (asked === undefined ? ['docker', 'podman', 'buildah'] : [asked]).find((name) => works(name))
  if (found === undefined) {
    const lacking = asked
      ? `${asked}, which does not work here`
      : 'Docker, Podman or Buildah, and none works here'
    stop(`npm run test:image needs ${lacking}: install it, or start its service`)
  }
  return found === 'buildah' ? unpacked() : byDaemon(found)
}

/** The client alone runs nothing. */
function works(name: string): boolean {
  return Bun.which(name) !== null && Bun.spawnSync([name, 'info'], { stderr: 'ignore' }).exitCode === 0
}

function byDaemon(program: string): Engine {
  let name = ''
  let number = 0
  return {
    name: program,
    start({ image, data, env }) {
      name = `waystation-test-${process.pid}-${number++}`
      const settings = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
      const walls = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=host']
      run([
        program,
        'run',
        '--detach',
        '--name',
        name,
        ...walls,
        '--volume',
        `${data}:/data`,
        ...settings,
        image,
      ])
      const started = name
      return {
        pid: () => Number(run([program, 'inspect', '--format', '{{.State.Pid}}', started])),
        async end(signal) {
          run([program, 'kill', '--signal', signal, started])
          const code = Number(run([program, 'wait', started]))
          run([program, 'rm', '--force', started])
          return code
        },
        log: () => run([program, 'logs', started]),
      }
    },
    health({ image }) {
      const [, ...command] = configOf([program, 'inspect', '--type', 'image', image]).Healthcheck?.Test ?? []
      return Bun.spawnSync([program, 'exec', name, ...command]).exitCode
    },
    clean() {},
  }
}

/** Needs root. */
function unpacked(): Engine {
  let container = ''
  let root = ''
  let config: ImageConfig = {}
  const unpack = (image: string) => {
    if (container !== '') return
    container = run(['buildah', 'from', '--pull-never', image])
    root = run(['buildah', 'mount', container])
    config = (
      JSON.parse(run(['buildah', 'inspect', '--type', 'image', image])) as { OCIv1: { config: ImageConfig } }
    ).OCIv1.config
  }
  const inside = ({ data, env }: Container, command: string[]) => {
    const settings = [
      ...(config.Env ?? []),
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ]
    return [
      ...['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', mounts, 'sh', root, data],
      ...['env', '-i', ...settings, Bun.which('setpriv')!, '--no-new-privs'],
      ...[Bun.which('chroot')!, `--userspec=${config.User}`, '--groups=', root, ...command],
    ]
  }
  return {
    name: 'buildah, unshare and chroot',
    start(container) {
      unpack(container.image)
      const command = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])]
      const child = Bun.spawn(inside(container, command), { stdout: 'ignore', stderr: 'inherit' })
      return {
        pid: () => lastChild(child.pid),
        async end(signal: Signal) {
          process.kill(lastChild(child.pid), signal)
          return child.exited
        },
        log: () => '', // it is seen already
      }
    },
    health(container) {
      // Buildah keeps it beside the OCI form, which has none.
      const [, command = ''] = /^HEALTHCHECK .*\\\n\s*CMD (\[.*\])$/m.exec(dockerfile())!
      return Bun.spawnSync(inside(container, JSON.parse(command) as string[])).exitCode
    },
    clean() {
      if (container !== '') run(['buildah', 'rm', container])
    },
  }
}

/** The root again, read-only; a folder to write to; and what every container has: /proc and a few devices. */
const mounts = `
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount -t proc proc "$1/proc"
for device in null zero random urandom; do
  [ -e "$1/dev/$device" ] || : > "$1/dev/$device"
  mount --bind "/dev/$device" "$1/dev/$device"
done
mount -o remount,bind,ro "$1"
shift 2
exec "$@"`

function dockerfile(): string {
  return readFileSync(new URL('../../deploy/docker/Dockerfile', import.meta.url), 'utf8')
}

function configOf(command: string[]): ImageConfig {
  return (JSON.parse(run(command)) as { Config: ImageConfig }[])[0]!.Config
}

/** Returns its output. Throws with its complaint when it fails. */
function run(command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.slice(0, 3).join(' ')}: ${stderr.toString().trim()}`)
  return stdout.toString().trim()
}
