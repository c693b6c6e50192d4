// The tenant: its admin key, the secret that signs its callbacks, its quotas.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { RotatedTenant, Tenant, TenantWithSecret } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { useGet } from '../api/load.ts'
import { ask, rotateAdminKey } from '../api/session.ts'
import { Badge, Button, Code, Facts, setTo, Text, Time } from '../ui/basics.tsx'
import { Quotas } from '../ui/meter.tsx'
import { Card, LoadedView } from '../ui/page.tsx'
import { Rotate, Rotation } from './rotate.tsx'

export function TenantKeys() {
  const loaded = useGet<Tenant>('/v1/tenants/me')
  const open = useSignal<'key' | 'secret' | null>(null)
  const onClose = setTo(open, null)
  const path = pathOf('/v1/tenants', loaded.value?.tenant_id ?? '')
  return (
    <>
      <div class="grid">
        <Card title="This tenant">
          <LoadedView loaded={loaded} what="the tenant" lines={6}>
            {(tenant) => (
              <div class="card-body">
                <TenantFacts {...tenant} />
                <KeyPart title="Admin key" verb="Rotate the admin key…" onClick={setTo(open, 'key')}>
                  Manages everything here, this console included. It cannot be shown again, only replaced.
                </KeyPart>
                <KeyPart
                  title="Signing secret"
                  verb="Rotate the signing secret…"
                  onClick={setTo(open, 'secret')}
                >
                  Receivers verify callbacks with it.
                </KeyPart>
              </div>
            )}
          </LoadedView>
        </Card>
        <Quotas loaded={loaded} />
      </div>
      {open.value === 'key' && (
        <Rotate<RotatedTenant>
          title="Rotate the admin key?"
          rotate={(grace_seconds) => rotateAdminKey(`${path}/rotate-key`, { grace_seconds })}
          keyOf={(rotated) => rotated.admin_key}
          {...{ onClose }}
        >
          <p>
            If you lose this key, only the operator of the service can let you back in. Keep the old key for
            some time: if the answer with the new one is lost, you can still rotate again. This tab continues
            with the new key; other tabs need it at their next sign-in.
          </p>
        </Rotate>
      )}
      {open.value === 'secret' && (
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
            Every receiver needs the new secret within 24 hours; until then the old one signs too. A second
            rotation within that time ends the oldest secret at once.
          </p>
        </Rotation>
      )}
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

interface KeyPartProps {
  title: string
  verb: string
  onClick: () => void
  children: ComponentChildren
}

function KeyPart({ title, verb, onClick, children }: KeyPartProps) {
  return (
    <>
      <h3 class="label detail-part">{title}</h3>
      <p>{children}</p>
      <div class="detail-actions parts">
        <Button text={verb} onClick={onClick} />
      </div>
    </>
  )
}
