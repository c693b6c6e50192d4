// A command of the operator as a value: what help, the parser and the tests are made from.

import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'

export type Cell = string | number | boolean | null

/** A table, or a sentence with the same facts as JSON. */
export type Printed =
  | { rows: Record<string, Cell>[] /** Instead of an empty table. */; none?: string }
  | { text: string; value: unknown }
  /** Rows that are printed as they are made, because what they hold is shown this once. */
  | { each: AsyncIterable<Record<string, Cell>>; none: string }

/** The settings and the terminal of a command, beside its arguments. */
export interface Given {
  config: Config
  /** The options that were named, such as `secrets`. */
  options: ReadonlySet<string>
  /** The values of options that take one, such as `scratch`. */
  values: ReadonlyMap<string, string>
  /** Throws unless the operator agrees, on the terminal or by `--yes`. */
  confirm(question: string): Promise<void>
  /** Asked for on the terminal unless it is in the environment. */
  passphrase(question: string): Promise<string>
  /** A line beside the output, while the command goes on. */
  say(line: string): void
}

interface Shared {
  /** Words and arguments: `set-plan <tenant> <plan>`; one in brackets may be left out. */
  usage: string
  about: string
  /** Options of its own, without dashes. */
  options?: Readonly<Record<string, string>>
  /** Options that take the next word: by `scratch <folder>`, what it does. */
  valued?: Readonly<Record<string, string>>
}

/** Works on the database of the service, which is open. */
export interface DatabaseCommand extends Shared {
  /** True for what ends a restore that was interrupted. Others refuse such a database. */
  opens_unfinished?: true
  run(db: Db, args: readonly string[], given: Given): Promise<Printed>
}

/** Opens what it needs. */
export interface OwnCommand extends Shared {
  runAlone(args: readonly string[], given: Given): Promise<Printed>
}

export type Command = DatabaseCommand | OwnCommand
