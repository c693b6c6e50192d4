// The changes of `npm run release -- <version>` to the files as they are.

import { describe, expect, test } from 'bun:test'
import { changedFiles, places, sectionOf } from '../scripts/release.ts'
import { hashOf } from '../src/base/keys.ts'
import { migrations } from '../src/features.ts'
import { version } from '../src/version.ts'
import { files, textOf } from './support/source.ts'

const to = '98.7.6'
const date = '2030-01-31'
const unreleased = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n'
/** The files as they are, with this changelog. */
const withChangelog = (text: string) => (file: string) => (file === 'CHANGELOG.md' ? text : textOf(file))

describe('a release', () => {
  const changed = changedFiles({ from: version, to, date }, withChangelog(unreleased))

  test('names the new version wherever the old one stood, and changes nothing else', () => {
    for (const [file, text] of changed) {
      if (file === 'CHANGELOG.md' || file === 'src/db/released.json') continue
      const was = textOf(file).split('\n')
      const lines = text.split('\n').map((line, i) => [was[i], line])
      const differ = lines.filter(([before, after]) => before !== after)
      expect(differ.length).toBeGreaterThanOrEqual(places.filter(([place]) => place === file).length)
      for (const [before, after] of differ) expect(after).toBe(before!.replace(version, to))
    }
  })

  test('finds every page and setting that names the version', () => {
    // An example, and a release of the past.
    const others = ['RELEASING.md', 'docs/decisions.md']
    const exact = new RegExp(`(?<![\\d.])${version.replaceAll('.', '\\.')}(?![\\d.]*\\d)`)
    const naming = files.filter((file) => {
      const is_text = /\.(md|json|ya?ml|sh|py|example|service)$|file$/.test(file)
      const is_ours = !/^(package-lock\.json|CHANGELOG\.md|bench\/)/.test(file)
      return is_text && is_ours && exact.test(textOf(file))
    })
    const known = [...new Set(places.map(([file]) => file)), ...others]
    expect(naming.filter((file) => !known.includes(file))).toEqual([])
  })

  test('dates what was unreleased', () => {
    expect(changed.get('CHANGELOG.md')).toBe(
      `# Changelog\n\n## [Unreleased]\n\n## [${to}] - ${date}\n\n### Added\n\n- A thing.\n`,
    )
    expect(sectionOf(changed.get('CHANGELOG.md')!, to)).toBe('### Added\n\n- A thing.')
    expect(sectionOf(changed.get('CHANGELOG.md')!, 'Unreleased')).toBe('')
    expect(sectionOf(changed.get('CHANGELOG.md')!, '1.0.0')).toBeNull()
  })

  test('fixes every migration from then on, and none that was fixed before', () => {
    const fixed = JSON.parse(changed.get('src/db/released.json')!) as Record<string, string>
    expect(fixed).toMatchObject(JSON.parse(textOf('src/db/released.json')))
    expect(fixed).toEqual(Object.fromEntries(migrations.map(({ name, text }) => [name, hashOf(text)])))
  })
})

describe('a release is refused', () => {
  const refusals: [why: string, to: string, changelog: string, message: string][] = [
    [
      'without anything to tell',
      to,
      '# Changelog\n\n## [Unreleased]\n',
      'CHANGELOG.md has nothing unreleased',
    ],
    ['of what is not a version', 'next', unreleased, 'next is not a version such as 0.2.0'],
    ['of an older version', '0.0.1', unreleased, `0.0.1 does not follow ${version}`],
    [
      'of the same version twice',
      version,
      `${unreleased}\n## [${version}] - ${date}\n\n- It.\n`,
      `${version} does not follow ${version}`,
    ],
  ]
  test.each(refusals)('%s', (_, to, changelog, message) => {
    expect(() => changedFiles({ from: version, to, date }, withChangelog(changelog))).toThrow(message)
  })

  test('when a file does not name the version where it should', () => {
    const moved = (file: string) => (file === 'README.md' ? '' : withChangelog(unreleased)(file))
    const text = `"waystation-${version}.tgz"`
    expect(() => changedFiles({ from: version, to, date }, moved)).toThrow(`README.md does not have ${text}`)
  })

  test('but for the first one, which the files name already', () => {
    const first = changedFiles({ from: version, to: version, date }, withChangelog(unreleased))
    expect(first.get('package.json')).toBe(textOf('package.json'))
    expect(first.get('CHANGELOG.md')).toContain(`## [${version}] - ${date}`)
  })
})
