// The yardstick: one nginx worker that answers a constant, with a configuration and files of its own.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drive, type Figures, slice, type Target, undisturbed, warm_up_seconds } from './load.ts'
import { cores, end, start, temporaryFolder } from './processes.ts'
import { freePort } from './service.ts'

const answer =
  '{"namespace":"bench","key":"key-0042","value":{"state":"running"},"version":1,"expires_at":null,"updated_at":"2026-01-31T12:00:00.000Z","request":"constant"}'

const start_ms_max = 5_000
const measured_seconds = 3

export const nginx_binary = Bun.which('nginx', { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` })

/**
 * nginx, measured between any two rows: the machine changes under us, so a row is compared with the nginx right
 * before and right after it. It idles, and costs nothing, in between.
 */
export class Yardstick {
  readonly figures: Figures[] = []

  private constructor(
    private readonly target: Target,
    readonly stop: () => Promise<void>,
  ) {}

  /** Throws when nginx is not there. */
  static async start(): Promise<Yardstick> {
    const nginx = await startNginx()
    const yardstick = new Yardstick({ ...nginx, path: null }, nginx.stop)
    await drive(yardstick.target, warm_up_seconds)
    await yardstick.#measure()
    return yardstick
  }

  /** Of a request, as the mean of the run before and one that is made now. */
  async cpuMicrosAround(): Promise<number> {
    const before = this.figures.at(-1)!.cpu_micros
    return (before + (await this.#measure())) / 2
  }

  async #measure(): Promise<number> {
    this.figures.push(await undisturbed(() => slice(this.target, measured_seconds)))
    return this.figures.at(-1)!.cpu_micros
  }
}

interface Nginx {
  url: string
  pid: number
  stop(): Promise<void>
}

export async function startNginx(): Promise<Nginx> {
  if (!nginx_binary) throw new Error('nginx not found')
  const { folder, remove } = temporaryFolder()
  const port = freePort()
  const config = join(folder, 'nginx.conf')
  mkdirSync(join(folder, 'temporary'))
  writeFileSync(config, configuration(folder, port))
  const child = start([nginx_binary, '-p', folder, '-e', join(folder, 'error.log'), '-c', config], {
    core: cores.server,
  })
  const errors = new Response(child.stderr).text()
  const url = `http://127.0.0.1:${port}/`
  for (let tries = 0; (await fetch(url).catch(() => null))?.status !== 200; tries++) {
    if (child.exitCode !== null || tries > start_ms_max / 10) {
      throw new Error(`nginx did not start: ${child.exitCode === null ? 'no answer' : await errors}`)
    }
    await Bun.sleep(10)
  }
  return {
    url,
    pid: child.pid,
    async stop() {
      await end(child)
      remove()
    },
  }
}

/** `master_process off` makes the process that we started the one that serves. */
function configuration(folder: string, port: number): string {
  const unused = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_timeout 60s;
  keepalive_requests 1000000000;
  ${unused.map((name) => `${name}_temp_path ${folder}/temporary/${name};`).join('\n  ')}
  server {
    listen 127.0.0.1:${port};
    location / {
      default_type application/json;
      return 200 '${answer}';
    }
  }
}
`
}
