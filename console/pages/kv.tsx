// The key-value store, read as it is stored: namespaces, keys by prefix, one value. Writing is for agents.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Entry, ListedKey, Namespace } from '../../sdk/src/types.ts'
import { exactMember } from '../checkpoint.tsx'
import { agentCurl } from '../curl.ts'
import { useGet, usePages } from '../load.ts'
import { address, setQuery, to } from '../router.ts'
import { count } from '../text.ts'
import { now } from '../time.ts'
import { Badge, Code, Command, Copy, Countdown, Facts, Text, Time } from '../ui/basics.tsx'
import { Field } from '../ui/form.tsx'
import { Card, Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Tree } from '../ui/tree.tsx'

const every_ms = 5_000
/** A larger value is read once, and again by a button. */
const polled_characters_max = 65_536
/** A larger value is not part of the command that replaces it. */
const command_characters_max = 4_096
const type_pause_ms = 250

export function KeyValues({ params: { namespace, key } }: { params: Record<string, string> }): JSX.Element {
  if (namespace === undefined) return <Namespaces />
  return <Keys key={namespace} {...{ namespace }} stored_key={key} />
}

const lead = 'What agents remember. It is read here and written by them alone.'

function Namespaces(): JSX.Element {
  const list = usePages<Namespace>('/v1/namespaces', {}, { every_ms })
  const columns: Column<Namespace>[] = [
    {
      title: 'Namespace',
      grow: true,
      cell: ({ namespace }) => (
        <a href={to(pathOf(namespace))}>
          <Code>{namespace}</Code>
        </a>
      ),
    },
    {
      title: 'Used by',
      cell: ({ agent_id }) =>
        agent_id === null ? (
          <span class="muted">all agents</span>
        ) : (
          <>
            <Badge tone="accent">private</Badge> <Code>{agent_id}</Code>
          </>
        ),
    },
  ]
  return (
    <Page title="Key-value store" {...{ lead }}>
      <div class="split">
        <div class="split-list">
          <LoadedView loaded={list} what="namespaces" lines={6}>
            {(rows) =>
              rows.length === 0 && !list.more ? (
                <Empty title="Nothing is stored">A namespace appears here with its first key.</Empty>
              ) : (
                <Table
                  caption="Namespaces"
                  id={(row) => row.namespace}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns, rows }}
                />
              )
            }
          </LoadedView>
        </div>
      </div>
    </Page>
  )
}

function pathOf(namespace: string, key?: string): string {
  const path = `/console/kv/${encodeURIComponent(namespace)}`
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`
}

function Keys({ namespace, stored_key }: { namespace: string; stored_key: string | undefined }): JSX.Element {
  const prefix = address.value.query.get('prefix') ?? ''
  const list = usePages<ListedKey>(apiPath(namespace), { prefix }, { every_ms })
  const columns: Column<ListedKey>[] = [
    {
      title: 'Key',
      grow: true,
      cell: ({ key }) => (
        <a href={to(pathOf(namespace, key), { prefix })}>
          <Text>{key}</Text>
        </a>
      ),
    },
    { title: 'Version', number: true, cell: ({ version }) => count(version) },
    { title: 'Written', wide: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
    { title: 'Expires', wide: true, cell: ({ expires_at }) => <Expiry at={expires_at} /> },
  ]
  return (
    <Page title="Key-value store" {...{ lead }}>
      <nav class="crumbs" aria-label="Where this is">
        <a href={to('/console/kv')}>All namespaces</a>
        <span aria-hidden="true">/</span>
        <Code>{namespace}</Code>
      </nav>
      <Prefix prefix={prefix} />
      <div class="split" data-open={stored_key !== undefined}>
        <div class="split-list">
          <LoadedView loaded={list} what="keys" lines={8}>
            {(rows) =>
              rows.length === 0 && !list.more ? (
                <Empty title={prefix === '' ? 'This namespace is empty' : 'No key begins like this'} />
              ) : (
                <Table
                  caption="Keys"
                  id={(row) => row.key}
                  current={stored_key}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns, rows }}
                />
              )
            }
          </LoadedView>
        </div>
        {stored_key !== undefined && <Value key={stored_key} {...{ namespace }} stored_key={stored_key} />}
      </div>
    </Page>
  )
}

function apiPath(namespace: string, key?: string): string {
  const path = `/v1/namespaces/${encodeURIComponent(namespace)}/keys`
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`
}

function Expiry({ at }: { at: string | null }): JSX.Element {
  if (at === null) return <span class="muted">never</span>
  return <Countdown until={at} over="expired" />
}

/** Searches a moment after the last letter. */
function Prefix({ prefix }: { prefix: string }): JSX.Element {
  const draft = useSignal(prefix)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    draft.value = prefix
  }, [prefix])
  const search = () => {
    clearTimeout(timer.current)
    setQuery({ prefix: draft.value })
  }
  return (
    <search aria-label="Keys">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          search()
        }}
      >
        <Field
          label="Keys that begin with"
          type="search"
          value={draft.value}
          onInput={(value) => {
            draft.value = value
            clearTimeout(timer.current)
            timer.current = window.setTimeout(search, type_pause_ms)
          }}
        />
      </form>
    </search>
  )
}

function Value({ namespace, stored_key }: { namespace: string; stored_key: string }): JSX.Element {
  const large = useSignal(false)
  const path = apiPath(namespace, stored_key)
  const loaded = useGet<Entry>(path, {}, { every_ms: large.value ? 0 : every_ms })
  const value = useMemo(
    () => (loaded.text === '' ? 'null' : (exactMember(loaded.text, 'value') ?? 'null')),
    [loaded.text],
  )
  useEffect(() => {
    large.value = loaded.text.length > polled_characters_max
  }, [loaded.text])
  return (
    <div class="split-detail">
      <LoadedView {...{ loaded }} what="the value" lines={10}>
        {({ version, expires_at, updated_at }) => (
          <Card title="Value" actions={<Copy text={stored_key} what="the key" />}>
            <div class="card-body">
              <h3 class="detail-title">
                <Text>{stored_key}</Text>
              </h3>
              <Facts
                facts={[
                  { name: 'Version', value: <span class="digits">{count(version)}</span> },
                  { name: 'Written', value: <Time at={updated_at} /> },
                  { name: 'Expires', value: <Expiry at={expires_at} /> },
                ]}
              />
              <div class="detail-section">
                <Tree text={value} what="the value" />
              </div>
              <Commands {...{ namespace, value, version, expires_at }} stored_key={stored_key} />
            </div>
          </Card>
        )}
      </LoadedView>
    </div>
  )
}

interface CommandsProps {
  namespace: string
  stored_key: string
  value: string
  version: number
  expires_at: string | null
}

function Commands({ namespace, stored_key, value, version, expires_at }: CommandsProps): JSX.Element {
  const path = `/v1/kv/${encodeURIComponent(namespace)}/${encodeURIComponent(stored_key)}`
  const url = location.origin + to(path)
  const new_value = value.length > command_characters_max ? '"the new value"' : value
  // A put without a time to live would keep the key for ever. Peeked at: the command does not tick.
  const left_ms = expires_at === null ? 0 : Date.parse(expires_at) - now.peek()
  const ttl = left_ms > 0 ? `, "ttl_seconds": ${Math.ceil(left_ms / 1_000)}` : ''
  return (
    <details class="elsewhere">
      <summary>Change or delete it</summary>
      <p class="muted">
        Only agents write, each with its own key; a private namespace belongs to its agent alone. Both
        commands do nothing when the value was changed meanwhile.
      </p>
      <Command what="Command that puts a value">
        {agentCurl('PUT', url, { json: `{"value": ${new_value}, "cas_version": ${version}${ttl}}` })}
      </Command>
      <Command what="Command that deletes the key">
        {agentCurl('DELETE', url, { headers: [`if-match: "${version}"`] })}
      </Command>
    </details>
  )
}
