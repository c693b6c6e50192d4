// The key-value store. Agents write it; the console reads it: namespaces, their keys by prefix, and values.

import type { ListedKey, Namespace } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { usePages } from '../api/load.ts'
import { address, setQuery, to } from '../router.ts'
import { count } from '../text/words.ts'
import { Badge, Code } from '../ui/basics.tsx'
import { First } from '../ui/first.tsx'
import { PrefixSearch } from '../ui/form.tsx'
import { Crumbs, Split, TableList } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, linkColumn, timeColumn } from '../ui/table.tsx'
import { first } from './first.ts'
import { Expiry, Value } from './value.tsx'

const every_ms = 5_000

export function KeyValues({ params: { namespace, key } }: { params: Record<string, string> }) {
  // Another namespace is another page: its title takes the focus.
  return (
    <Page
      key={namespace}
      title="Key-value store"
      docs="kv"
      lead="Data that agents keep. Only agents write it."
    >
      {namespace === undefined ? <Namespaces /> : <Keys {...{ namespace }} stored_key={key} />}
    </Page>
  )
}

const columns: Column<Namespace>[] = [
  linkColumn('Namespace', ({ namespace }) => [to(pathOf('/console/kv', namespace)), namespace], Code),
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

function Namespaces() {
  const list = usePages<Namespace>('/v1/namespaces', {}, { every_ms })
  return (
    <Split>
      <TableList
        what="namespaces"
        empty={<First {...first} />}
        caption="Namespaces"
        id={(row) => row.namespace}
        {...{ list, columns }}
      />
    </Split>
  )
}

function Keys({ namespace, stored_key }: { namespace: string; stored_key: string | undefined }) {
  const prefix = address.value.query.get('prefix') ?? ''
  const list = usePages<ListedKey>(`${pathOf('/v1/namespaces', namespace)}/keys`, { prefix }, { every_ms })
  const columns: Column<ListedKey>[] = [
    linkColumn('Key', ({ key }) => [to(pathOf('/console/kv', namespace, key), { prefix }), key]),
    { title: 'Version', number: true, cell: ({ version }) => count(version) },
    timeColumn('Written', ({ updated_at }) => updated_at, true),
    { title: 'Expires', wide: true, cell: ({ expires_at }) => <Expiry at={expires_at} /> },
  ]
  const detail = stored_key && (
    <Value key={stored_key} {...{ namespace, stored_key }} onChange={list.reload} />
  )
  return (
    <>
      <Crumbs href={to('/console/kv')} all="All namespaces">
        <Code>{namespace}</Code>
      </Crumbs>
      <PrefixSearch
        label="Keys"
        title="Keys that begin with"
        prefix={prefix}
        onSearch={(wanted) => setQuery({ prefix: wanted })}
        live
      />
      <Split {...{ detail }}>
        <TableList
          what="keys"
          empty={<Empty title={prefix === '' ? 'This namespace is empty' : 'No key has this prefix'} />}
          caption="Keys"
          id={(row) => row.key}
          current={stored_key}
          {...{ list, columns }}
        />
      </Split>
    </>
  )
}
