// `npm run release -- 0.2.0`: the new version in every file that names it, its section in CHANGELOG.md, and the migrations
// that are fixed from now on. `--notes` prints the section of the current version, `--check` throws unless this commit is its
// release: npm runs that before it publishes. RELEASING.md has the steps.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { iso, systemClock } from '../src/base/clock.ts'
import { hashOf } from '../src/base/keys.ts'
import { migrations } from '../src/features.ts'
import { version as current } from '../src/version.ts'

const root = join(import.meta.dir, '..')
const changelog = 'CHANGELOG.md'
/** Name to hash of every released migration. */
const released_migrations = 'src/db/released.json'

/** Where the version stands, once or more often; `{}` is the version. */
export const places: readonly (readonly [file: string, text: string])[] = [
  ['package.json', '"version": "{}"'],
  ['package-lock.json', '{\n  "name": "waystation-service",\n  "version": "{}"'],
  ['package-lock.json', '"": {\n      "name": "waystation-service",\n      "version": "{}"'],
  ['package-lock.json', '"sdk": {\n      "name": "waystation",\n      "version": "{}"'],
  ['sdk/package.json', '"version": "{}"'],
  ['conformance/package.json', '"version": "{}"'],
  ['sdk-python/pyproject.toml', '\nversion = "{}"\n'],
  ['openapi.json', '\n    "version": "{}"'],
  ['README.md', 'waystation-{}.tgz'],
  ['docs/sdk.md', 'waystation-{}.tgz'],
  ['docs/tutorial.md', 'Waystation {} is ready'],
  ['docs/self-hosting.md', '"version": "{}"'],
  ['docs/deploy.md', 'waystation:{}'],
  ['docs/deploy.md', 'waystation-service-{}.tgz'],
  ['deploy/docker/Dockerfile', 'ARG VERSION={}\n'],
  ['deploy/compose/sqlite.yml', 'waystation:{}'],
  ['deploy/compose/postgres.yml', 'waystation:{}'],
  ['deploy/compose/env.example', 'waystation:{}'],
  ['deploy/helm/waystation/Chart.yaml', '\nversion: {}\n'],
  ['deploy/helm/waystation/Chart.yaml', '\nappVersion: "{}"\n'],
]

export interface Release {
  from: string
  to: string
  /** YYYY-MM-DD. */
  date: string
}

/** The files that a release changes, with their new text. Throws when it cannot be made. */
export function changedFiles(release: Release, textOf: (file: string) => string): Map<string, string> {
  const changed = new Map([[changelog, changelogOf(release, textOf(changelog))]])
  for (const [file, text] of places) {
    const [before, after] = [release.from, release.to].map((version) => text.replaceAll('{}', version))
    const now = changed.get(file) ?? textOf(file)
    if (!now.includes(before!)) throw new Error(`${file} does not have ${JSON.stringify(before)}`)
    changed.set(file, now.replaceAll(before!, after!))
  }
  const fixed = JSON.parse(textOf(released_migrations)) as Record<string, string>
  for (const { name, text } of migrations) fixed[name] ??= hashOf(text)
  const sorted = Object.entries(fixed).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return changed.set(released_migrations, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
}

/** The unreleased part becomes the section of the version. */
function changelogOf({ from, to, date }: Release, text: string): string {
  if (!isVersion(to)) throw new Error(`${to} is not a version such as 0.2.0`)
  const is_first = from === to && sectionOf(text, from) === null
  if (!is_first && Bun.semver.order(to, from) !== 1) throw new Error(`${to} does not follow ${from}`)
  if (!sectionOf(text, 'Unreleased')) throw new Error(`${changelog} has nothing unreleased`)
  return text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${to}] - ${date}\n`)
}

/** The text under the heading of a version, empty when nothing stands there, or null. */
export function sectionOf(text: string, version: string): string | null {
  const section = text.split(/^## /m).find((part) => part.startsWith(`[${version}]`))
  if (section === undefined) return null
  return section.slice(section.indexOf('\n') + 1).trim()
}

function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(text)
}

function release(to: string): void {
  requireClean()
  const date = iso(systemClock.now()).slice(0, 10)
  const changed = changedFiles({ from: current, to, date }, textOf)
  for (const [file, text] of changed) writeFileSync(join(root, file), text)
  console.log(`${current} -> ${to} in ${changed.size} files. Read them with git diff, then:

  npm test
  git commit --all --message 'Release ${to}'
  git tag --annotate v${to} --message 'Waystation ${to}'

RELEASING.md has the rest.`)
}

function notes(): string {
  const section = sectionOf(textOf(changelog), current)
  if (section === null) throw new Error(`${changelog} has no section [${current}]`)
  return section
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function git(...args: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...args], { cwd: root })
  if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString().trim()}`)
  return stdout.toString().trim()
}

/** Throws unless the files here are those of the tag, and the changelog knows the version. */
function requireReleased(): void {
  if (!sectionOf(textOf(changelog), current)) throw new Error(`${changelog} has no section [${current}]`)
  requireClean()
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(`v${current}`)) {
    throw new Error(`this commit has no tag v${current}`)
  }
}

function requireClean(): void {
  if (git('status', '--porcelain') !== '') throw new Error('there are changes that are not committed')
}

function main([command = '', ...others]: string[]): void {
  if (others.length > 0 || command === '') throw new Error('npm run release -- <version> | --notes | --check')
  if (command === '--check') requireReleased()
  else if (command === '--notes') console.log(notes())
  else release(command)
}

if (import.meta.main) {
  try {
    main(process.argv.slice(2))
  } catch (error) {
    console.error(`release: ${(error as Error).message}`)
    process.exit(1)
  }
}
