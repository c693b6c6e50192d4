// One check at work: what it may use, and the calls that it has made, for the report.

import { holds, NotRun } from './assert.ts'
import type { Answer } from './client.ts'
import type { Hook } from './receiver.ts'
import { Actor, type Tenant } from './tenant.ts'
import type { Timeline } from './timeline.ts'
import type { World } from './world.ts'

/** The calls of a failed check that the report shows. */
const shown_calls_max = 4
const look_again_ms = 40
/** For what is under way when a tick has answered. */
const settled_ms = 200
/** A service that ticks on its own begins within 250 ms of the due time. */
const by_itself_ms = 1_000

export class Trial {
  /** Without a key. */
  readonly anyone: Actor
  readonly calls: Answer[] = []
  readonly #chapter: string

  constructor(
    readonly world: World,
    chapter: string,
    readonly time: Timeline,
  ) {
    this.#chapter = chapter
    this.anyone = new Actor((sent) => world.send(sent, this.calls), {})
  }

  /** The tenant that the checks of this chapter share. */
  async tenant(): Promise<Tenant> {
    return (await this.world.tenantOf(this.#chapter)).in(this)
  }

  /** Another tenant, which shares nothing with the first. */
  async stranger(): Promise<Tenant> {
    return (await this.world.tenantOf('stranger')).in(this)
  }

  /** A tenant of this check alone, which it may change. Needs an open sign-up. */
  async newTenant(plan: 'free' | 'pro' = 'pro'): Promise<Tenant> {
    return (await this.world.newTenant(plan)).in(this)
  }

  /** An address that the service can call, and what it got there. */
  async hook(): Promise<Hook> {
    return this.world.hook()
  }

  /** Looks until the condition holds; due work is pushed on where the service leaves that to its caller. */
  until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    return this.#look(condition, what, async () => void (await this.world.pushDueWork()))
  }

  /** Polls until the condition holds: the service has to bring it about on its own, at once. */
  happens(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    return this.#look(condition, what, async () => {})
  }

  async #look(
    condition: () => boolean | Promise<boolean>,
    what: string,
    meanwhile: () => Promise<void>,
  ): Promise<void> {
    const { patience_ms } = this.world.options
    const give_up_at = Date.now() + patience_ms
    while (!(await condition())) {
      if (Date.now() > give_up_at) holds(false, `waited ${patience_ms / 1_000} s without success: ${what}`)
      await meanwhile()
      await pause(look_again_ms)
    }
  }

  /** Everything that is due has been done, as far as a caller can bring that about. */
  async settled(): Promise<void> {
    const pushed = await this.world.pushDueWork()
    await pause(pushed ? settled_ms : by_itself_ms)
  }

  /** The check cannot be made here. */
  notRun(why: string): never {
    throw new NotRun(why)
  }

  /** The last calls, as the report shows them: without a key in clear. */
  evidence(): string[] {
    return this.calls.slice(-shown_calls_max).map(shownCall)
  }
}

function shownCall({ sent, status, text }: Answer): string {
  const body = typeof sent.body === 'string' ? ` ${masked(sent.body).slice(0, 300)}` : ''
  return `${sent.method} ${masked(sent.path).slice(0, 200)}${body} -> ${status} ${masked(text).slice(0, 1_000)}`
}

/** Keys and signing secrets are secrets in a report, too. */
export function masked(text: string): string {
  return text.replace(/(svc_(?:adm|agt|apr)_|whsec_)[0-9A-Za-z+/=]{6,}/g, '$1****')
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
