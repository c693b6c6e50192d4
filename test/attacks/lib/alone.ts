// `bun test/attacks/<name>.ts` runs that attack alone, as `npm run attacks -- <name>` does.

import { join } from 'node:path'

export function runAlone({ main }: { main: boolean }, name: string): void {
  if (!main) return
  const run = join(import.meta.dir, '../run.ts')
  const { exitCode } = Bun.spawnSync([process.execPath, run, name, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  process.exit(exitCode)
}
