// `npm run check:metrics`: promtool checks the rules and the settings of deploy/prometheus, and runs the tests of the rules.

import { join } from 'node:path'
import { needProgram } from './needed.ts'

needProgram('npm run check:metrics', 'promtool', 'it comes with Prometheus, https://prometheus.io/download/')
const folder = 'deploy/prometheus'
for (const words of [
  ['check', 'rules', `${folder}/alerts.yml`],
  ['check', 'config', `${folder}/prometheus.yml`],
  ['test', 'rules', `${folder}/alerts.test.yml`],
]) {
  const { exitCode } = Bun.spawnSync(['promtool', ...words], {
    cwd: join(import.meta.dir, '..'),
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (exitCode !== 0) process.exit(1)
}
