import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { TestService } from '../../test/support/service.ts'
import { newKey } from '../base/keys.ts'
import type { Turn } from '../db/db.ts'
import {
  refused_addresses_max,
  UrgentLookUps,
  urgent_look_ups_max,
  urgent_look_ups_of_address_max,
} from './urgent-look-ups.ts'

const times = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i))

describe('urgent look-ups of unknown keys', () => {
  test('are few of one address, few of all together, and as many again once they have ended', () => {
    const look_ups = new UrgentLookUps(new TestClock())
    const addresses = urgent_look_ups_max / urgent_look_ups_of_address_max
    for (let i = 0; i < addresses; i++) {
      const entered = times(urgent_look_ups_of_address_max + 1, () => look_ups.enter(`address ${i}`))
      expect(entered.filter(Boolean)).toHaveLength(urgent_look_ups_of_address_max)
    }
    expect(look_ups.enter('another')).toBe(false)
    look_ups.leave('address 0')
    expect([look_ups.enter('another'), look_ups.enter('a third')]).toEqual([true, false])
  })

  test('are none of an address that has sent too many wrong keys, until it may send some again', () => {
    const clock = new TestClock()
    const look_ups = new UrgentLookUps(clock)
    look_ups.refuse('a', 40)
    clock.advance(39_999)
    expect([look_ups.enter('a'), look_ups.enter('b')]).toEqual([false, true])
    clock.advance(1)
    expect(look_ups.enter('a')).toBe(true)
  })

  test('remember as many refused addresses as they may, and forget the one that was refused first', () => {
    const look_ups = new UrgentLookUps(new TestClock())
    for (let i = 0; i <= refused_addresses_max; i++) look_ups.refuse(`address ${i}`, 60)
    expect([look_ups.enter('address 0'), look_ups.enter('address 1')]).toEqual([true, false])
  })
})

onPostgres('Made up keys on a route that is refused last (postgres)', () => {
  test('take the urgent room of a few at most, and the key of an admin that was seen before needs none of it', async () => {
    const database_url = await newPostgresDatabase()
    const service = new TestService()
    await service.start(database_url)
    try {
      const { tenant_id, admin_key } = await service.signUp()
      const path = `/v1/tenants/${tenant_id}`
      expect((await service.ask('GET', path, { key: admin_key })).status).toBe(200)
      service.clock.advance(1_000) // the key is looked up again
      const { db } = service.app
      const gate = Promise.withResolvers<void>()
      const [read, one] = [db.read.bind(db), db.one.bind(db)]
      const turns: Turn[] = []
      let ordinary = 0
      db.read = (async (turn: Turn, work: never) => {
        turns.push(turn)
        if (turn.group !== undefined) await gate.promise
        return read(turn, work)
      }) as never
      db.one = (async (statement: never, params: never) => {
        ordinary += 1
        return one(statement, params)
      }) as never
      const count = urgent_look_ups_of_address_max + 10
      const asked = times(count, () => service.ask('GET', path, { key: newKey('admin') }))
      const outside = await Promise.all(asked.slice(urgent_look_ups_of_address_max))
      const urgent = turns.filter((turn) => turn.urgent)
      gate.resolve()
      const inside = await Promise.all(asked.slice(0, urgent_look_ups_of_address_max))
      expect(new Set([...outside, ...inside].map(({ status }) => status))).toEqual(new Set([401]))
      expect([urgent.length, ordinary]).toEqual([urgent_look_ups_of_address_max, 10])
    } finally {
      await service.stop()
      await dropPostgresDatabase(database_url)
    }
  })
})
