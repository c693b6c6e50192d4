// A revision beside this checkout, for a comparison.

import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder, undoLater } from './processes.ts'

/** This checkout. */
export const root = join(import.meta.dir, '..')

/** The revision in a folder of its own, with the packages of this checkout. */
export function checkOut(revision: string): { folder: string; remove: () => void } {
  const { folder, remove } = temporaryFolder()
  const checkout = join(folder, 'before')
  git('worktree', 'add', '--detach', checkout, revision)
  const removeWorktree = undoLater(() => git('worktree', 'remove', '--force', checkout))
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'), 'dir')
  if (lockOf(checkout) !== lockOf(root)) {
    console.log('*** package-lock.json differs: both run with the packages of this checkout ***')
  }
  return {
    folder: checkout,
    remove() {
      removeWorktree()
      remove()
    },
  }
}

function git(...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(['git', '-C', root, ...args])
  if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString().trim()}`)
}

function lockOf(checkout: string): string {
  return readFileSync(join(checkout, 'package-lock.json'), 'utf8')
}
