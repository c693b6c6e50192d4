// A command as a value: what the program, its help and the completion scripts are made from.

import type { Command } from 'commander'
import type { Waystation } from '../sdk/src/index.ts'
import type { Cli } from './cli.ts'

export interface Group {
  about: string
  examples: readonly string[]
}

export interface CommandSpec extends Group {
  /** Words and arguments: `kv delete <namespace> <key>`. */
  usage: string
  options?: readonly CommandOption[]
  /** Arguments that become a part of a path. */
  path?: readonly string[]
}

/** A command by hand. */
export interface OwnCommand extends CommandSpec {
  /** The values of an argument. */
  choices?: Readonly<Record<string, readonly string[]>>
  run(cli: Cli, given: Given, program: Command): unknown
}

/** A command by hand for an operation whose words and options are generated. */
export interface Override {
  options?: readonly CommandOption[]
  run: OwnCommand['run']
}

/** The command of an operation. */
export interface GeneratedCommand extends CommandSpec {
  operation: string
  path: readonly string[]
  options: readonly CommandOption[]
  /** The argument that may also come from a file or standard input. */
  json?: { name: string; is_required: boolean; is_object: boolean } | undefined
  /** Takes an idempotency key. */
  creates?: boolean
  /** Needs no key. */
  is_public?: boolean
  /** Something must be given. */
  changes?: boolean
  defaults?: Readonly<Record<string, unknown>>
  pages?: 'cursor' | 'offset' | 'whole'
  columns?: readonly string[]
  /** The member of the answer that `--save` keeps as a profile. */
  key?: string
  /** The word that is printed when the answer is empty: `deleted`. */
  done?: string
  /** The member of the answer that is printed without `--json`. */
  shows?: string
  // biome-ignore lint/suspicious/noExplicitAny: checked when it is read from the words, and by the service
  call(client: Waystation, given: any, options: { idempotency_key?: string }): unknown
}

export interface CommandOption {
  /** The field of the request; without it the value is named as the flag is. */
  sets?: string
  /** `--grace <duration>`; without a placeholder it is on or off. */
  flag: string
  about: string
  is_required?: boolean
  reads?: 'duration' | 'wait' | 'whole_number' | 'number' | 'list' | 'json' | 'idempotency_key'
  choices?: readonly string[]
  /** A second flag for the same field: `<duration>` from now, the content of `<path>`, or `value`. */
  or?: { flag: string; about: string; value?: unknown }
}

/** Arguments and options by the names of what they set. */
// biome-ignore lint/suspicious/noExplicitAny: checked when it is read from the words, and by the service
export type Given = Record<string, any>
