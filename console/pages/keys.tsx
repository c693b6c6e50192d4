// Who may do what: agents and their keys, approval keys, and the tenant's own.

import type { JSX } from 'preact'
import { Agents } from '../keys/agents.tsx'
import { ApprovalKeys } from '../keys/approval-keys.tsx'
import { TenantKeys } from '../keys/tenant.tsx'
import { navigate } from '../router.ts'
import { Tabs } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import '../work.css'
import '../keys.css'

const parts = ['agents', 'approval-keys', 'tenant'] as const
type Part = (typeof parts)[number]

const titles: Record<Part, string> = {
  agents: 'Agents',
  'approval-keys': 'Approval keys',
  tenant: 'Tenant',
}

export function Keys({ params }: { params: Record<string, string> }): JSX.Element {
  const part = parts.find((name) => name === params.part) ?? 'agents'
  return (
    <Page title="Agents and keys" lead="Who may do what. A key is shown when it is made, and never again.">
      <Tabs
        label="Kind"
        panel="keys"
        current={part}
        tabs={parts.map((name) => ({ id: name, title: titles[name] }))}
        onChange={(name) => navigate(name === 'agents' ? '/console/keys' : `/console/keys/${name}`)}
      />
      <div id="keys" role="tabpanel" aria-label={titles[part]}>
        {part === 'agents' && <Agents id={params.id} />}
        {part === 'approval-keys' && <ApprovalKeys />}
        {part === 'tenant' && <TenantKeys />}
      </div>
    </Page>
  )
}
