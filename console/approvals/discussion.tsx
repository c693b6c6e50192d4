// Votes and comments on a request, as the approval page and the console show them.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Comment, Vote } from '../../sdk/src/types.ts'
import { newKey, useAction } from '../api/action.ts'
import type { Ask, Method, PageOf, Result } from '../api/client.ts'
import { type Loaded, useLoad } from '../api/load.ts'
import { isoOf, moment } from '../text/time.ts'
import { count, counted, shown } from '../text/words.ts'
import { Badge, Button, LongText, setTo, Text, Time } from '../ui/basics.tsx'
import { Field, Form } from '../ui/form.tsx'
import { ErrorBox } from '../ui/page.tsx'
import type { AnswerField, AnswerSchema } from './answer-form.tsx'
import { useFocusAt } from './focus-at.ts'
import type { Steered } from './steered.ts'

/** A call with the key of the page. */
export type Asking = <T>(
  method: Method,
  path: string,
  ask?: Pick<Ask, 'body' | 'headers' | 'signal' | 'query'>,
) => Promise<Result<T>>

/** An answer has 1 MiB at most, and goes on in the next one. */
const rows_a_page = 200
/** More than comments and votes can take: each page has one of them at least. */
const pages_max = 200

/** A whole list, page after page. */
async function readAll<T>(ask: Asking, path: string, signal: AbortSignal): Promise<Result<T[]>> {
  const items: T[] = []
  let cursor: string | null | undefined
  for (let page = 0; page < pages_max && cursor !== null; page += 1) {
    const result = await ask<PageOf<T>>('GET', path, { signal, query: { limit: rows_a_page, cursor } })
    if (!result.ok) return result
    items.push(...result.value.items)
    cursor = result.value.next_cursor
  }
  return { ok: true, value: items, text: '' }
}

const nothing = { ok: true as const, value: [], text: '' }

/** The list as it was read last, while newer ones are on their way. `items`: how many there are; null before that is known. */
function useList<T>(
  version: string,
  items: number | null,
  read: (signal: AbortSignal) => Promise<Result<T[]>>,
) {
  const loaded = useLoad<T[]>(version, async (signal) => (items ? read(signal) : nothing))
  const kept = useRef<T[] | null>(null)
  if (items !== null) kept.current = items === 0 ? nothing.value : (loaded.value ?? kept.current)
  return { ...loaded, value: kept.current }
}

type Counts = Pick<
  Steered,
  'approvals' | 'rejections' | 'required_approvals' | 'required_rejections' | 'edited'
>

/** The votes on a request, where more than one decision counts; none before it is known. Read again when they change. */
export function useVotes(of: Counts | null, path: string, ask: Asking): Loaded<Vote[]> {
  const version = `${path}/votes ${of?.approvals} ${of?.rejections} ${of?.edited}`
  const items = of && (isQuorum(of) ? of.approvals + of.rejections : 0)
  return useList<Vote>(version, items, (signal) => readAll(ask, `${path}/votes`, signal))
}

function isQuorum({ required_approvals, required_rejections }: Counts): boolean {
  return required_approvals > 1 || required_rejections > 1
}

/** The votes so far, where more than one decision counts. */
export function Votes({ of, votes }: { of: Steered; votes: Loaded<Vote[]> }) {
  const { approvals, rejections, required_approvals, required_rejections } = of
  if (!isQuorum(of)) return null
  const listed = votes.value?.toSorted((one, other) => (one.at < other.at ? -1 : 1)) ?? []
  return (
    <section aria-label="Votes" class="detail-part">
      <h2 class="label">Votes</h2>
      <p>
        {approvals} of {counted(required_approvals, 'approval')}, {rejections} of{' '}
        {counted(required_rejections, 'rejection')}.
      </p>
      {votes.problem && <ErrorBox problem={votes.problem} retry={votes.reload} />}
      <ul class="discussion">
        {listed.map((vote) => (
          <li key={vote.voter} data-counts={String(vote.counts)}>
            <Badge>{vote.decision}</Badge> <Name id={vote.voter} label={vote.voter_label} />{' '}
            <span class="muted">
              <Time at={vote.at} />
              {vote.edited && ', changed the payload'}
              {!vote.counts && ', no longer counts: the payload was changed'}
            </span>
            {vote.reason && <LongText>{vote.reason}</LongText>}
            {vote.answer && <Answer of={vote.answer} schema={of.answer_schema} />}
          </li>
        ))}
      </ul>
    </section>
  )
}

interface AnswerProps {
  of: Record<string, unknown>
  /** Says what the members are called. */
  schema: AnswerSchema | null
}

/** The members of an answer, one a line. */
export function Answer({ of, schema }: AnswerProps) {
  const { properties = {} } = schema ?? {}
  return (
    <dl class="answer-shown">
      {Object.entries(of).map(([name, value]) => {
        const field = Object.hasOwn(properties, name) ? properties[name] : undefined
        return (
          <div key={name}>
            <dt>{shown(field?.title || name)}</dt>
            <dd>
              <Text>
                {typeof value === 'boolean' ? (value ? 'yes' : 'no') : valueText(String(value), field)}
              </Text>
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

/** A time is said as it was written: in the time zone of the reader. */
function valueText(text: string, field: AnswerField | undefined): string {
  const at = field?.format === 'date-time' && isoOf(text)
  return at ? moment(at) : text
}

function Name({ id, label }: { id: string; label: string | null }) {
  return <strong>{shown(label ?? (id === 'admin' ? 'The administrator' : id))}</strong>
}

const comment_characters_max = 4_000

interface CommentsProps {
  of: Steered
  path: string
  ask: Asking
}

/** Comments, which decide nothing. */
export function Comments({ of, path, ask }: CommentsProps) {
  const sent = useSignal(0)
  const open = useSignal(false)
  const draft = useSignal('')
  /** Of the text that is sent: a repeat after a lost answer adds it once. */
  const idempotency_key = useRef('')
  const { busy, problem, run } = useAction()
  const of_version = `${path}/comments ${of.comments} ${sent.value}`
  const list = useList<Comment>(of_version, of.comments + sent.value, (signal) =>
    readAll(ask, `${path}/comments`, signal),
  )
  const comments = list.value ?? []
  const place = useFocusAt(open.value)
  const submit = async () => {
    const written = draft.value
    const text = written.trim()
    if (busy || text === '') return
    const headers = { 'idempotency-key': idempotency_key.current }
    const done = await run(() => ask<Comment>('POST', `${path}/comments`, { body: { text }, headers }))
    if (!done) return
    sent.value += 1
    // The field still has what was written into it meanwhile.
    if (draft.peek() !== written) return
    draft.value = ''
    open.value = false
  }
  return (
    <section ref={place} aria-label="Comments" class="detail-part">
      {(comments.length > 0 || of.comments > 0) && (
        <h2 class="label">Comments: {count(Math.max(comments.length, of.comments))}</h2>
      )}
      {list.problem && <ErrorBox problem={list.problem} retry={list.reload} />}
      <ul class="discussion">
        {comments.map(({ id, author, author_label, at, text }) => (
          <li key={id}>
            <Name id={author} label={author_label} />{' '}
            <span class="muted">
              <Time at={at} />
            </span>
            <LongText>{text}</LongText>
          </li>
        ))}
      </ul>
      {problem && <ErrorBox {...{ problem }} />}
      {open.value ? (
        <Form kind="stack" own_checks onSubmit={() => void submit()}>
          <Field
            label="Comment"
            hint="The agent and the other approvers can read it. It decides nothing."
            rows={3}
            characters_max={comment_characters_max}
            value={draft.value}
            onInput={(value) => {
              draft.value = value
              idempotency_key.current = newKey()
            }}
          />
          <Button text="Add the comment" type="submit" busy={busy} />
        </Form>
      ) : (
        <Button text="Write a comment" kind="quiet" onClick={setTo(open, true)} />
      )}
    </section>
  )
}
