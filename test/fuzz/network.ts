// A network of the run's own. Callbacks and forwards are sent to addresses that Schemathesis makes up, which may be
// somebody's: the run, its services and its PostgreSQL reach nothing but loopback.

import { networkInterfaces } from 'node:os'

const inside = 'WAYSTATION_FUZZ_INSIDE'
/** Root needs no namespace of users, and PostgreSQL refuses who only looks like root. */
const as_user = process.getuid?.() === 0 ? [] : ['--map-current-user', '--keep-caps']

export function onlyLoopback(names = Object.keys(networkInterfaces())): boolean {
  return names.length > 0 && names.every((name) => name === 'lo')
}

/**
 * Null when nothing but loopback can be reached: the run goes on. Otherwise the same command was run in a network
 * namespace, and this is its exit status. Throws where that is not permitted.
 */
export async function runAlone(): Promise<number | null> {
  if (onlyLoopback()) return null
  const refusal =
    'Fuzzing sends to made-up addresses, and runs only where nothing but loopback can be reached'
  if (process.env[inside]) throw new Error(`${refusal}: the new network namespace has more`)
  if (process.platform !== 'linux' || !Bun.which('unshare') || !Bun.which('ip'))
    throw new Error(`${refusal}: this needs Linux with unshare (util-linux) and ip (iproute2)`)
  const namespace = ['unshare', '-n', ...as_user, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
  const output = { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const
  if (Bun.spawnSync([...namespace, 'true'], output).exitCode !== 0)
    throw new Error(`${refusal}: no right to make a network namespace (unshare -n); run it as root`)
  const child = Bun.spawn([...namespace, process.execPath, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit'],
    env: { ...process.env, [inside]: '1' },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  return child.exited
}
