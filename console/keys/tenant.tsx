// The tenant: its admin key, the secret that signs its callbacks, its quotas.

import type { RotatedTenant, Tenant, TenantWithSecret } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { pathOf } from '../api/address.ts'
import { useGet } from '../api/load.ts'
import { ask, rotateAdminKey } from '../api/session.ts'
import { Badge, Code, Facts, Text, Time } from '../ui/basics.tsx'
import { Quotas } from '../ui/meter.tsx'
import { Card, LoadedView } from '../ui/page.tsx'
import { Rotate, Rotation } from './rotate.tsx'

export function TenantKeys() {
  const loaded = useGet<Tenant>('/v1/tenants/me')
  return (
    <div class="grid">
      <Card title="This tenant">
        <LoadedView loaded={loaded} what="the tenant" lines={6}>
          {(tenant) => (
            <div class="card-body">
              <TenantFacts {...tenant} />
              <Keys path={pathOf('/v1/tenants', tenant.tenant_id)} />
            </div>
          )}
        </LoadedView>
      </Card>
      <Quotas loaded={loaded} />
    </div>
  )
}

function Keys({ path }: { path: string }) {
  return (
    <>
      <h3 class="label detail-part">Admin key</h3>
      <p>Manages everything here, this console included. It cannot be shown again, only replaced.</p>
      <div class="detail-actions parts">
        <Asking text="Rotate the admin key">
          {(onClose) => (
            <Rotate<RotatedTenant>
              title="Rotate the admin key?"
              rotate={(grace_seconds) => rotateAdminKey(`${path}/rotate-key`, { grace_seconds })}
              keyOf={(rotated) => rotated.admin_key}
              {...{ onClose }}
            >
              <p>
                If you lose this key, only the operator of the service can let you back in. Keep the old key
                for some time: if the answer with the new one is lost, you can still rotate again. This tab
                continues with the new key; other tabs need it at their next sign-in.
              </p>
            </Rotate>
          )}
        </Asking>
      </div>
      <h3 class="label detail-part">Signing secret</h3>
      <p>Receivers verify callbacks with it.</p>
      <div class="detail-actions parts">
        <Asking text="Rotate the signing secret">
          {(onClose) => (
            <Rotation<TenantWithSecret>
              title="Rotate the signing secret?"
              rotate={() => ask('POST', `${path}/rotate-signing-secret`)}
              shown={({ signing_secret }) => ({
                title: 'The new signing secret',
                secrets: [{ name: 'Signing secret', text: signing_secret }],
                about:
                  'For 24 hours callbacks also carry a signature of the old secret. Replace it within that time.',
              })}
              {...{ onClose }}
            >
              <p>
                Every receiver needs the new secret within 24 hours; until then the old one signs too. A
                second rotation within that time ends the oldest secret at once.
              </p>
            </Rotation>
          )}
        </Asking>
      </div>
    </>
  )
}

function TenantFacts({ tenant_id, name, plan, owner_email, created_at }: Tenant) {
  return (
    <Facts
      facts={{
        Name: <Text>{name}</Text>,
        Plan: <Badge tone="neutral">{plan}</Badge>,
        Owner: <Text>{owner_email}</Text>,
        Created: <Time at={created_at} />,
        Id: <Code>{tenant_id}</Code>,
      }}
    />
  )
}
