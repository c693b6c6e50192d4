// One stored value, and the commands that change it.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Entry, ListedKey } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { AgentQuestion } from '../actions/own-agent.tsx'
import { pathOf } from '../api/address.ts'
import type { PageOf, Result } from '../api/client.ts'
import { useGet, useLoad, useMember } from '../api/load.ts'
import { ask, askAsAgent } from '../api/session.ts'
import { address, useWayOn } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { now } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Button, Commands, Copy, Countdown, Facts, Time } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { Detail, DetailTitle } from '../ui/list.tsx'
import { announce } from '../ui/toast.tsx'
import { Tree } from '../ui/tree.tsx'

const every_ms = 5_000
/** A larger value is loaded again only when the list of keys has another version of it. */
const repeated_characters_max = 65_536
/** A larger value is not part of the command that replaces it. */
const command_characters_max = 4_096

interface ValueProps {
  namespace: string
  stored_key: string
  /** Called when the list beside it has to be loaded again. */
  onChange: () => void
}

export function Value({ namespace, stored_key, onChange }: ValueProps) {
  const large = useSignal(false)
  const list_path = `${pathOf('/v1/namespaces', namespace)}/keys`
  const path = pathOf(list_path, stored_key)
  const loaded = useGet<Entry>(path, {}, { every_ms: large.value ? 0 : every_ms })
  const value = useMember(loaded, 'value') ?? 'null'
  useEffect(() => {
    large.value = loaded.text.length > repeated_characters_max
  }, [loaded.text])
  const listed = useListedVersion(list_path, stored_key, large.value)
  useEffect(() => {
    if (listed !== null && loaded.value && listed !== loaded.value.version) loaded.reload()
  }, [listed])
  return (
    <Detail
      {...{ loaded }}
      what="the value"
      title="Value"
      name={() => stored_key}
      actions={() => <Copy text={stored_key} what="the key" />}
    >
      {(entry) => (
        <>
          <DetailTitle>{stored_key}</DetailTitle>
          <Facts
            facts={{
              Version: <span class="digits">{count(entry.version)}</span>,
              Written: <Time at={entry.updated_at} />,
              Expires: <Expiry at={entry.expires_at} />,
            }}
          />
          <div class="detail-part">
            <Tree text={value} what="the value" />
          </div>
          <Delete
            path={pathOf('/v1/kv', namespace, stored_key)}
            {...{ namespace, stored_key, entry, onChange }}
          />
          <Changes path={pathOf('/v1/kv', namespace, stored_key)} {...{ entry, value }} />
        </>
      )}
    </Detail>
  )
}

/** Null while it is not asked for, or not known; 0 of a key that is gone. */
function useListedVersion(path: string, stored_key: string, asks: boolean): number | null {
  const nothing = { ok: true as const, value: null, text: '' }
  const read = async (signal: AbortSignal): Promise<Result<number | null>> => {
    // By prefix they come in the order of the keys: the prefix itself is the first.
    const query = { prefix: stored_key, limit: 1 }
    const listed = await ask<PageOf<ListedKey>>('GET', path, { query, signal })
    if (!listed.ok) return listed
    const [first] = listed.value.items
    return { ...nothing, value: first?.key === stored_key ? first.version : 0 }
  }
  return useLoad(
    asks ? `version of ${path} ${stored_key}` : 'no version',
    asks ? read : async () => nothing,
    {
      every_ms: asks ? every_ms : 0,
    },
  ).value
}

interface DeleteProps extends ValueProps {
  path: string
  entry: Entry
}

/** Its own agent may read and write a private namespace, and nobody else. */
const private_prefix = '__'

function Delete(props: DeleteProps) {
  if (props.namespace.startsWith(private_prefix)) {
    return (
      <div class="mend">
        <div class="detail-actions parts">
          <Button text="Delete" disabled />
        </div>
        <p class="reasons muted small">A private namespace belongs to its agent alone.</p>
      </div>
    )
  }
  return (
    <div class="detail-actions parts">
      <Asking text="Delete" kind="danger">
        {(onClose) => <DeleteQuestion {...props} {...{ onClose }} />}
      </Asking>
    </div>
  )
}

function DeleteQuestion(props: DeleteProps & { onClose: () => void }) {
  const { path, namespace, stored_key, entry, onChange, onClose } = props
  // Of the value that was looked at: another one may be put while this is open.
  const version = useRef(entry.version).current
  const { leaveRemoved } = useWayOn()
  return (
    <AgentQuestion
      title="Delete this key?"
      verb="delete"
      work={() => askAsAgent('DELETE', path, { headers: { 'if-match': `"${version}"` } })}
      done_by={['KEY_NOT_FOUND']}
      onDone={() => {
        announce('Deleted.')
        leaveRemoved(pathOf('/console/kv', namespace), Object.fromEntries(address.value.query))
        onChange()
      }}
      {...{ onClose }}
    >
      <Emphasis>{stored_key}</Emphasis>
      <p>
        Its value is removed for good, unless it has changed since version {count(version)}. Agents that read
        it get the answer that there is no such key.
      </p>
    </AgentQuestion>
  )
}

interface ChangesProps {
  path: string
  entry: Entry
  /** JSON text. */
  value: string
}

function Changes({ path, entry: { version, expires_at }, value }: ChangesProps) {
  const new_value = value.length > command_characters_max ? '"the new value"' : value
  // A put without a time to live would keep the key for ever. The time is not followed: the command does not tick.
  const left_ms = expires_at === null ? 0 : Date.parse(expires_at) - now.peek()
  const ttl = left_ms > 0 ? `, "ttl_seconds": ${Math.ceil(left_ms / 1_000)}` : ''
  const json = `{"value": ${new_value}, "cas_version": ${version}${ttl}}`
  return (
    <Commands
      title="Change or delete it"
      lead="Only agents write, each with its own key; a private namespace belongs to its agent alone. Both commands do nothing when the value has changed in the meantime."
      commands={[
        ['Command that puts a value', agentCurl('PUT', path, { json })],
        ['Command that deletes the key', agentCurl('DELETE', path, { headers: [`if-match: "${version}"`] })],
      ]}
    />
  )
}

export function Expiry({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">never</span>
  return <Countdown until={at} over="expired" />
}
