import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import {
  Groups,
  groupOf,
  groups_count,
  type Signal,
  signalOf,
  signalText,
  text_bytes_max,
  topicOf,
} from './signal-text.ts'
import { gap_ms, type SignalListener, Signals } from './signals.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A node that notes what it is told, and what it sends. */
class Node implements SignalListener {
  readonly sent: string[] = []
  readonly woken: string[] = []
  readonly woken_groups: number[] = []
  readonly forgotten: (string | null)[] = []
  all_woken = 0
  due_found = 0
  waited: string[] = []
  failing = false
  readonly signals: Signals

  constructor(name: string, clock: TestClock, onSend: (text: string) => void = () => {}) {
    this.signals = new Signals({
      clock,
      node: name,
      listener: this,
      send: async (text) => {
        if (this.failing) throw new Error('the database is away')
        this.sent.push(text)
        onSend(text)
      },
    })
  }

  /** Begins to wait. */
  waits(topic: string): void {
    this.waited.push(topic)
    this.signals.waits(topic)
  }

  wake(topic: string): void {
    this.woken.push(topic)
  }
  wakeGroups(groups: ReadonlySet<number>): void {
    this.woken_groups.push(...groups)
  }
  wakeAll(): void {
    this.all_woken += 1
  }
  topics(): string[] {
    return this.waited
  }
  forget(tenant_id: string | null): void {
    this.forgotten.push(tenant_id)
  }
  due(): void {
    this.due_found += 1
  }

  get last(): Signal {
    return signalOf(this.sent.at(-1)!)!
  }
}

/** Lets everything run that is ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve()
}

async function pass(clock: TestClock, ms: number): Promise<void> {
  clock.advance(ms)
  jest.advanceTimersByTime(ms)
  await settle()
}

/** Nodes that hear each other. */
function cluster(count: number) {
  const clock = new TestClock()
  const nodes: Node[] = []
  for (let i = 0; i < count; i++) {
    const hear = (text: string) => {
      for (const { signals } of nodes) signals.receive(text)
    }
    nodes.push(new Node(`node-${i}`, clock, hear))
  }
  for (const { signals } of nodes) signals.setHeard(true)
  return { clock, nodes }
}

/** The same, once each knows what the others wait for. */
async function settledCluster(count: number) {
  const made = cluster(count)
  await pass(made.clock, 15_000)
  return made
}

const topic = topicOf('ten_a/chk_1')
/** Another topic, of another group. */
const other = ['b', 'c'].map(topicOf).find((one) => groupOf(one) !== groupOf(topic))!

const nothing: Signal = {
  ...{ from: 'node', waits: null, topics: [], groups: [], all_topics: false },
  ...{ tenant_ids: [], all_tenants: false, due: false },
}

describe('A signal as text', () => {
  test('is read as it was written', () => {
    const waits = new Groups()
    for (const group of [0, 7, 8, groups_count - 1]) waits.add(group)
    const signal: Signal = {
      ...{ from: 'node', waits, topics: [topic], groups: [4], all_topics: true },
      ...{ tenant_ids: ['ten_a'], all_tenants: true, due: true },
    }
    expect(signalOf(signalText(signal))).toEqual(signal)
    expect(signalOf(signalText(nothing))).toEqual(nothing)
    expect(signalText(nothing)).toBe('{"from":"node"}')
  })

  test.each([
    ['no JSON', 'hello', null],
    ['null', 'null', null],
    ['a number', '1', null],
    ['no sender', '{"topics": []}', null],
    [
      'members of the wrong types',
      '{"from": "n", "waits": 1, "topics": [1], "groups": "x", "due": 1}',
      { from: 'n' },
    ],
    ['a set of another size', '{"from": "n", "waits": "AAAA"}', { from: 'n' }],
    ['a set that is not base64', '{"from": "n", "waits": "%"}', { from: 'n' }],
    [
      'groups that there are not',
      `{"from": "n", "groups": [-1, 0.5, ${groups_count}, 5]}`,
      { from: 'n', groups: [5] },
    ],
    ['members of a later version', '{"from": "n", "more": [1], "due": true}', { from: 'n', due: true }],
  ])('with %s is read as far as it can be', (_, text, expected) => {
    expect(signalOf(text)).toEqual(expected && { ...nothing, ...expected })
  })

  test('names what requests wait for by a hash that is the same on every node, and no tenant', () => {
    expect(topicOf('ten_a/chk_1')).toBe(topicOf('ten_a/chk_1'))
    expect(topicOf('ten_a/chk_1')).toMatch(/^[0-9a-f]{16}$/)
    expect(topicOf('ten_a/chk_1')).not.toBe(topicOf('ten_b/chk_1'))
    expect(topicOf('')).toBe('ef46db3751d8e999') // xxHash64 of nothing, as its specification has it
    expect(groupOf('fff0000000000000')).toBe(groups_count - 1)
  })
})

describe('A change that requests may wait for', () => {
  test('wakes them on the other nodes, and not on its own', async () => {
    const { nodes } = cluster(3)
    nodes[1]!.waits(topic)
    await settle()
    nodes[0]!.signals.changed(topic)
    await settle()
    expect(nodes.map(({ woken }) => woken)).toEqual([[], [topic], [topic]])
  })

  test('is not signalled where no other node has a request in its group', async () => {
    const { nodes, clock } = await settledCluster(2)
    const [a, b] = nodes as [Node, Node]
    b.waits(topic)
    await settle()
    const sent = a.sent.length
    a.signals.changed(other)
    await pass(clock, 1_000)
    expect(a.sent.length).toBe(sent)
    a.signals.changed(topic)
    await settle()
    expect([a.sent.length, b.woken]).toEqual([sent + 1, [topic]])
  })

  test('is signalled as long as a node does not know what the others wait for: 15 s', async () => {
    const { nodes, clock } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    await pass(clock, 14_999)
    a.signals.changed(topic)
    await settle()
    expect(b.woken).toEqual([topic])
    await pass(clock, 1)
    a.signals.changed(other)
    await settle()
    expect(b.woken).toEqual([topic])
  })

  test('is signalled while the node does not hear the others', async () => {
    const { nodes, clock } = await settledCluster(2)
    const [a, b] = nodes as [Node, Node]
    a.signals.setHeard(false)
    await pass(clock, 60_000)
    a.signals.changed(topic)
    await settle()
    expect(b.woken).toEqual([topic])
  })

  test('that came between the look of a request and the node’s learning of it is signalled then', async () => {
    const { nodes, clock } = await settledCluster(2)
    const [a, b] = nodes as [Node, Node]
    a.signals.changed(topic) // nobody is known to wait
    a.signals.changed(other)
    await settle()
    expect(b.woken).toEqual([])
    b.waits(topic) // it looked before the change
    await settle()
    expect([b.woken, b.woken_groups]).toEqual([[], [groupOf(topic)]])
    // A change of long ago was there when the request looked.
    await pass(clock, 15_000)
    b.waits(other)
    await pass(clock, 100)
    expect(b.woken_groups).toEqual([groupOf(topic)])
  })

  test('that came while what a node waits for was forgotten is signalled when the node says it again', async () => {
    const { nodes, clock } = await settledCluster(1)
    const [a] = nodes as [Node]
    const waits = new Groups()
    waits.add(groupOf(topic))
    const announcement = signalText({ ...nothing, from: 'b', waits })
    a.signals.receive(announcement)
    await pass(clock, 15_000)
    a.signals.changed(topic)
    await pass(clock, 100)
    expect(a.sent).toEqual([])
    a.signals.receive(announcement)
    await settle()
    expect(a.last.groups).toEqual([groupOf(topic)])
  })

  test('is signalled no more once nobody waits for it', async () => {
    const { nodes, clock } = await settledCluster(2)
    const [a, b] = nodes as [Node, Node]
    b.waits(topic)
    await pass(clock, 20_000)
    a.signals.changed(topic)
    await pass(clock, 100)
    expect(b.woken).toEqual([topic])
    b.waited = []
    await pass(clock, 5_000)
    a.signals.changed(topic)
    await pass(clock, 100)
    expect(b.woken).toEqual([topic])
  })

  test('is signalled no more to a node that is gone, after 15 s', async () => {
    const { nodes, clock } = await settledCluster(2)
    const [a, b] = nodes as [Node, Node]
    b.waits(topic)
    await settle()
    await b.signals.stop()
    const sent = a.sent.length
    await pass(clock, 14_999)
    a.signals.changed(topic)
    await settle()
    expect(a.sent.length).toBe(sent + 1)
    await pass(clock, 15_000)
    a.signals.changed(topic)
    await settle()
    expect(a.sent.length).toBe(sent + 1)
  })
})

describe('What a node sends', () => {
  test('leaves at once, and nothing more for 10 ms: what changes meanwhile goes together', async () => {
    const { clock, nodes } = cluster(1)
    const [node] = nodes as [Node]
    expect(gap_ms).toBe(10)
    node.signals.tenantChanged('ten_a')
    node.signals.tenantChanged('ten_b') // of the same commit
    await settle()
    expect(node.last.tenant_ids).toEqual(['ten_a', 'ten_b'])
    for (let i = 0; i < 100; i++) node.signals.changed(topicOf(String(i)))
    node.signals.tenantChanged('ten_c')
    await pass(clock, 9)
    expect(node.sent).toHaveLength(1)
    await pass(clock, 1)
    expect(node.sent).toHaveLength(2)
    expect([node.last.topics.length, node.last.tenant_ids]).toEqual([100, ['ten_c']])
    await pass(clock, 100)
    node.signals.tenantChanged('ten_d')
    await settle()
    expect(node.sent).toHaveLength(3)
  })

  test('is in texts of 7,900 bytes at most, one each 10 ms, the tenants first, and complete', async () => {
    const { clock, nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    expect(text_bytes_max).toBe(7_900)
    const topics = Array.from({ length: 5_000 }, (_, i) => topicOf(String(i)))
    const tenant_ids = Array.from({ length: 1_000 }, (_, i) => `ten_${String(i).padStart(26, '0')}`)
    for (const one of topics) a.waits(one) // so that the largest parts come together
    for (const one of topics) a.signals.changed(one)
    for (const one of tenant_ids) a.signals.tenantChanged(one)
    a.signals.due()
    for (let i = 0; i < 100; i++) await pass(clock, 10)
    expect(Math.max(...a.sent.map((text) => Buffer.byteLength(text)))).toBeGreaterThan(7_000)
    expect(a.sent.filter((text) => Buffer.byteLength(text) > text_bytes_max)).toEqual([])
    expect(b.woken).toEqual(topics)
    expect(b.forgotten).toEqual(tenant_ids)
    expect([b.due_found, b.all_woken]).toEqual([1, 0])
    const last_tenant = a.sent.findLastIndex((text) => signalOf(text)!.tenant_ids.length > 0)
    const first_topic = a.sent.findIndex((text) => signalOf(text)!.topics.length > 0)
    expect(last_tenant).toBeLessThanOrEqual(first_topic)
  })

  test.each([
    ['5,000 topics are named; past them every waiting request looks', 5_000, 0],
    ['5,001 topics are not', 5_001, 1],
  ])('%s', async (_, count, all_woken) => {
    const { clock, nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    for (let i = 0; i < count; i++) a.signals.changed(topicOf(String(i)))
    for (let i = 0; i < 100; i++) await pass(clock, 10)
    expect([b.all_woken, b.woken.length]).toEqual([all_woken, all_woken ? 0 : count])
  })

  test.each([
    ['1,000 tenants are named; past them all keys are forgotten', 1_000],
    ['1,001 tenants are not', 1_001],
  ])('%s', async (_, count) => {
    const { clock, nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    const tenant_ids = Array.from({ length: count }, (_, i) => `ten_${i}`)
    for (const one of tenant_ids) a.signals.tenantChanged(one)
    for (let i = 0; i < 100; i++) await pass(clock, 10)
    expect(b.forgotten).toEqual(count === 1_000 ? tenant_ids : [null])
  })

  test.each([
    ['256 nodes', 256, 0],
    ['257 nodes, when every change is signalled', 257, 1],
  ])('depends on what %s wait for', async (_, count, more) => {
    const { clock, nodes } = await settledCluster(1)
    const [node] = nodes as [Node]
    for (let i = 0; i < count; i++) {
      node.signals.receive(signalText({ ...nothing, from: `other-${i}`, waits: new Groups() }))
    }
    await pass(clock, 100)
    const sent = node.sent.length
    node.signals.changed(topic)
    await settle()
    expect(node.sent.length).toBe(sent + more)
  })

  test('that fails is sent again with what came meanwhile', async () => {
    const { clock, nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    a.failing = true
    a.signals.tenantChanged('ten_a')
    a.signals.changed(topic)
    a.signals.due()
    a.waits(topic)
    await pass(clock, 1_000)
    a.failing = false
    a.signals.tenantChanged('ten_b')
    await pass(clock, 250)
    expect(a.sent).toHaveLength(1)
    expect([b.forgotten.toSorted(), b.woken, b.due_found]).toEqual([['ten_a', 'ten_b'], [topic], 1])
    expect(a.last.waits?.has(groupOf(topic))).toBe(true)
  })

  test('leaves with the stop of the node at once, and nothing after it', async () => {
    const { nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    a.signals.tenantChanged('ten_a')
    await settle()
    a.signals.tenantChanged('ten_b')
    await a.signals.stop()
    expect(b.forgotten).toEqual(['ten_a', 'ten_b'])
    a.signals.tenantChanged('ten_c')
    await settle()
    expect(a.sent).toHaveLength(2)
  })

  test('ends with a stop whose signal fails', async () => {
    const { nodes } = cluster(1)
    const [node] = nodes as [Node]
    node.failing = true
    node.signals.tenantChanged('ten_a')
    await node.signals.stop()
    expect(node.sent).toEqual([])
  })

  test('says of due jobs ten times a second at most', async () => {
    const { clock, nodes } = cluster(2)
    const [a, b] = nodes as [Node, Node]
    for (let i = 0; i < 20; i++) {
      a.signals.due()
      await pass(clock, 50)
    }
    expect(b.due_found).toBe(10)
  })

  test('says nothing as long as nothing happens, and what is waited for every 5 s', async () => {
    const { clock, nodes } = cluster(1)
    const [node] = nodes as [Node]
    await pass(clock, 60_000)
    expect(node.sent).toEqual([])
    node.waits(topic)
    node.waits(topic)
    await settle()
    expect(node.sent).toHaveLength(1)
    await pass(clock, 5_000)
    expect(node.sent).toHaveLength(2)
    node.waited = []
    for (let i = 0; i < 4; i++) await pass(clock, 5_000)
    expect(node.sent).toHaveLength(3)
    expect(node.last.waits?.isEmpty).toBe(true)
  })
})
