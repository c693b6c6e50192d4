// Agents and their keys, approval keys, and the keys of the tenant.

import { navigate } from '../router.ts'
import { Tabs } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { Agents } from './agents.tsx'
import { ApprovalKeys } from './approval-keys.tsx'
import { TenantKeys } from './tenant.tsx'
import './keys.css'

const titles = { agents: 'Agents', 'approval-keys': 'Approval keys', tenant: 'Tenant' }
type Part = keyof typeof titles

export function Keys({ params }: { params: Record<string, string> }) {
  const part = Object.hasOwn(titles, params.part ?? '') ? (params.part as Part) : 'agents'
  return (
    <Page
      title="Agents and keys"
      docs="keys"
      lead="Keys and their rights. A key is shown when it is created, and never again."
    >
      <Tabs
        label="Kind"
        panel="keys"
        current={part}
        {...{ titles }}
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
