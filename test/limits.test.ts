import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { allLimits, areaOf, limitsText } from '../scripts/limits.ts'
import { limit } from '../src/base/limit.ts'
import { settings } from '../src/settings.ts'

const file = readFileSync(new URL('../docs/limits.md', import.meta.url), 'utf8')
const all = await allLimits()

describe('docs/limits.md', () => {
  test('in git is what the declarations say; after a change run: npm run limits', async () => {
    expect(file).toBe(await limitsText())
  })

  test('has a title for each area', () => {
    expect(() => areaOf({ name: 'nowhere.rows' })).toThrow('the area of nowhere.rows has no title')
    expect(file).toContain('\n## Starting\n')
  })

  test('has every limit once', () => {
    const named = [...file.matchAll(/^\| `(\w+\.\w+)` \|/gm)].map(([, name]) => name!)
    expect(named.toSorted()).toEqual(all.map(({ name }) => name).toSorted())
    expect(named.length).toBeGreaterThan(50)
  })
})

describe('a limit', () => {
  test('is named after its area, is above 0, and has a sentence that says what it is for', () => {
    const strange = all.filter(({ name, value, protects }) => {
      const named = /^[a-z]\w*\.[a-z]\w*$/.test(name)
      return !(named && value > 0 && /^[A-Z`].{10,}\.$/.test(protects))
    })
    expect(strange).toEqual([])
  })

  test('is changed by a setting that there is, or by none', () => {
    const unknown = all.filter(({ setting }) => setting !== null && !Object.hasOwn(settings, setting))
    expect(unknown).toEqual([])
  })

  test('has a name of its own', () => {
    const [first] = all
    expect(() => limit(first!.name, 1, 'rows', 'Another one with the same name.')).toThrow(
      `two limits are named ${first!.name}`,
    )
  })
})
