// A database of a test that knows whether anything is unanswered, and in which some statements fail.

import {
  type Awaitable,
  type Db,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type StoredCounter,
  type Tx,
  turnOf,
} from '../../src/db/db.ts'

type Listener = (name: string) => void

/** Knows whether anything that was asked of the database is still unanswered. */
export class QuietDb implements Db {
  readonly engine: Db['engine']
  readonly clock: Db['clock']
  #pending = 0
  /** Statements that are to fail, by name. */
  readonly failing = new Set<string>()
  /** Called before each of these fails. */
  onFailing: () => void = () => {}
  /** Called with the name of each single read before it runs; may throw. */
  onRead: Listener = () => {}

  constructor(private readonly db: Db) {
    this.engine = db.engine
    this.clock = db.clock
  }

  get is_away(): boolean {
    return this.db.is_away
  }

  async one<Row>(statement: Statement<Row>, params: Params): Promise<Row | null> {
    return this.#counted(async () => {
      this.onRead(statement.name)
      return this.db.one(statement, params)
    })
  }

  async all<Row>(statement: Statement<Row>, params: Params): Promise<Row[]> {
    return this.#counted(async () => {
      this.onRead(statement.name)
      return this.db.all(statement, params)
    })
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), given?: (q: Reader) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#counted(() => this.db.read(turn, work))
  }

  storedBytes(tenant_id: string, counter: StoredCounter): number {
    return this.db.storedBytes(tenant_id, counter)
  }

  onChange(listener: (key: string) => void): void {
    this.db.onChange(listener)
  }

  notify(text: string): Promise<void> {
    return this.db.notify(text)
  }

  maintain(): Promise<void> {
    return this.db.maintain()
  }

  gauges(): ReturnType<Db['gauges']> {
    return this.db.gauges()
  }

  takeRole(role: string): Promise<boolean> {
    return this.db.takeRole(role)
  }

  faults(): Promise<string[]> {
    return this.db.faults()
  }

  trouble() {
    return this.db.trouble()
  }

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#counted(() =>
      this.db.write(turn, (tx) =>
        work(this.failing.size === 0 ? tx : new FailingTx(tx, this.failing, () => this.onFailing())),
      ),
    )
  }

  async #counted<T>(action: () => Promise<T>): Promise<T> {
    this.#pending += 1
    try {
      return await action()
    } finally {
      this.#pending -= 1
    }
  }

  /** Resolves when nothing is asked of the database, and nobody was about to ask. */
  async quiet(): Promise<void> {
    for (let turns = 0; turns < 3; turns = this.#pending === 0 ? turns + 1 : 0) await nextTurn()
  }

  durability() {
    return this.db.durability()
  }

  onStatement(listener: Listener | null): void {
    this.db.onStatement(listener)
  }

  close(): Promise<void> {
    return this.db.close()
  }
}

/** A transaction in which some statements fail. */
class FailingTx implements Tx {
  readonly now: number
  readonly disk_full: boolean
  readonly beside: number

  constructor(
    private readonly tx: Tx,
    private readonly failing: ReadonlySet<string>,
    private readonly onFailing: () => void,
  ) {
    this.now = tx.now
    this.disk_full = tx.disk_full
    this.beside = tx.beside
  }

  one<Row>(statement: Statement<Row>, params: Params) {
    this.#mayFail(statement)
    return this.tx.one(statement, params)
  }

  all<Row>(statement: Statement<Row>, params: Params) {
    this.#mayFail(statement)
    return this.tx.all(statement, params)
  }

  run(statement: Statement, params: Params) {
    this.#mayFail(statement)
    return this.tx.run(statement, params)
  }

  afterCommit(effect: () => void): void {
    this.tx.afterCommit(effect)
  }

  changed(key: string): void {
    this.tx.changed(key)
  }

  stores(tenant_id: string, bytes: number): void {
    this.tx.stores(tenant_id, bytes)
  }

  stored(tenant_id: string, counted: StoredCounter): number {
    return this.tx.stored(tenant_id, counted)
  }

  #mayFail({ name }: Statement<unknown>): void {
    if (!this.failing.has(name)) return
    this.onFailing()
    throw new Error(`${name} fails`)
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
