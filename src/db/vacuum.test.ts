// The temporary file of a vacuum.

import { Database } from 'bun:sqlite'
import { afterAll, expect, spyOn, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SqliteFile } from './sqlite-file.ts'
import { vacuumSqlite } from './vacuum.ts'

const root = mkdtempSync(join(tmpdir(), 'waystation-vacuum-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** The folder of the temporary files of this process; empty for the usual one. */
function temporaryFolder(): unknown {
  using db = new Database(':memory:')
  return db.query('pragma temp_store_directory').values()[0]?.[0] ?? ''
}

function madeAt(path: string): void {
  mkdirSync(dirname(path))
  using db = new Database(path, { create: true })
  db.run('pragma journal_mode = wal')
  db.run('create table removed as select randomblob(1000000) as bytes')
  db.run('delete from removed')
}

test('a vacuum has its temporary file beside the database, where the room was looked at', () => {
  const path = join(root, "the operator's", 'waystation.db')
  madeAt(path)
  const folders: unknown[] = []
  const { exec } = SqliteFile.prototype
  const spy = spyOn(SqliteFile.prototype, 'exec').mockImplementation(function (this: SqliteFile, text) {
    if (text === 'vacuum') folders.push(temporaryFolder())
    exec.call(this, text)
  })
  try {
    const { before, after } = vacuumSqlite(path)
    expect(after).toBeLessThan(before)
  } finally {
    spy.mockRestore()
  }
  expect([folders, temporaryFolder()]).toEqual([[dirname(path)], ''])
})
