// The operator's command, called as a function.

import { expect } from 'bun:test'
import { runAdmin } from '../../src/admin/run.ts'
import { listenUrlOf } from './postgres.ts'

export interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** Behind a pooler the operator's commands have the login of the owner past it, as docs/postgres.md says. */
export function pastPooler(env: Record<string, string>): Record<string, string> {
  const owner_url = listenUrlOf(env.DATABASE_URL ?? '')
  return owner_url ? { DATABASE_OWNER_URL: owner_url, ...env } : env
}

export class Operator {
  /** The lines typed on the terminal, one for each question. */
  answers: string[] = []
  questions: string[] = []
  is_terminal = false

  constructor(readonly env: Record<string, string>) {}

  /** With other settings. */
  with(env: Record<string, string>): Operator {
    return new Operator({ ...this.env, ...env })
  }

  async run(...words: string[]): Promise<Ended> {
    const printed: string[] = []
    const complaints: string[] = []
    const code = await runAdmin(words, {
      env: pastPooler(this.env),
      command: 'npm run admin --',
      is_terminal: this.is_terminal,
      print: (text) => printed.push(`${text}\n`),
      complain: (text) => complaints.push(`${text}\n`),
      ask: async (question) => {
        this.questions.push(question)
        return this.answers.shift() ?? null
      },
    })
    return { code, stdout: printed.join(''), stderr: complaints.join('') }
  }

  /** Returns its output. Fails when the command fails. */
  async does(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words)
    expect([words.join(' '), code, stderr]).toEqual([words.join(' '), 0, ''])
    return stdout
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of the shape
  async json(...words: string[]): Promise<any> {
    return JSON.parse(await this.does(...words, '--json'))
  }

  /** The line that it refused with. */
  async refusal(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words)
    expect([code, stdout]).toEqual([1, ''])
    return stderr.trimEnd()
  }
}
