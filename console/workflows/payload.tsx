// A stored JSON value on the line: a small one as its members with their values, a larger one as a tree.

import { useMemo } from 'preact/hooks'
import { membersOf } from '../../sdk/src/json.ts'
import { kindOf } from '../text/json.ts'
import { shown } from '../text/words.ts'
import { StringValue, Tree } from '../ui/tree.tsx'

interface PayloadProps {
  /** JSON text; null and JSON null show nothing. */
  text: string | null
  /** The value, in words: "the payload". */
  what: string
}

/** A larger value is folded away. */
const open_characters_max = 3_000

export function Payload({ text, what }: PayloadProps) {
  const pairs = useMemo(() => (text === null ? null : pairsOf(text.trim())), [text])
  if (text === null || text.trim() === 'null') return null
  if (pairs !== null) return <Pairs {...{ pairs, what }} />
  return (
    <details class="moment-payload" open={text.length <= open_characters_max}>
      <summary>{what.replace(/^the (.)/, (_, first: string) => first.toUpperCase())}</summary>
      <Tree {...{ text, what }} />
    </details>
  )
}

interface Pair {
  name: string
  /** JSON texts of numbers, strings, booleans and null. */
  values: string[]
}

const pairs_max = 10
const pair_characters_max = 160
const values_max = 6

/** The members of a small object, those of objects in it by their path; null where they would not be read at a glance. */
function pairsOf(text: string, path = ''): Pair[] | null {
  if (kindOf(text) !== 'object' || text.length > pairs_max * pair_characters_max) return null
  const pairs: Pair[] = []
  for (const { name = '', text: value } of membersOf(text)) {
    const full = path === '' ? name : `${path}.${name}`
    const kind = kindOf(value)
    const inner = kind === 'object' && path.split('.').length < 3 ? pairsOf(value, full) : null
    const values = kind === 'array' ? membersOf(value).map((one) => one.text) : [value]
    if (inner) pairs.push(...inner)
    else if (!isShort(values)) return null
    else pairs.push({ name: full, values })
    if (pairs.length > pairs_max) return null
  }
  return pairs.length === 0 ? null : pairs
}

function isShort(values: readonly string[]): boolean {
  const is_leaf = (text: string) => !['object', 'array'].includes(kindOf(text))
  const length = values.reduce((sum, text) => sum + text.length, 0)
  return (
    values.length > 0 && values.length <= values_max && values.every(is_leaf) && length <= pair_characters_max
  )
}

function Pairs({ pairs, what }: { pairs: Pair[]; what: string }) {
  return (
    <dl class="moment-pairs" aria-label={what}>
      {pairs.map(({ name, values }, i) => (
        <div key={i}>
          <dt>
            <bdi>{shown(name)}</bdi>
          </dt>
          <dd>
            {values.map((value, place) => (
              <>
                {place > 0 && ', '}
                <Leaf text={value} />
              </>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Leaf({ text }: { text: string }) {
  const kind = kindOf(text)
  return kind === 'string' ? <StringValue {...{ text }} /> : <span class={`tree-${kind}`}>{text}</span>
}
