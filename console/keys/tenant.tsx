// What is the tenant's own: the admin key, the secret that signs its callbacks, its quotas.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import type { RotatedTenant, Tenant, TenantWithSecret } from '../../sdk/src/types.ts'
import { useAction } from '../action.ts'
import { useGet } from '../load.ts'
import { Quotas } from '../pages/overview.tsx'
import { ask, keepKey } from '../session.ts'
import { Badge, Button, Code, Facts, Text, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Card } from '../ui/page.tsx'
import { ErrorBox, LoadedView } from '../ui/states.tsx'
import { Rotate } from './rotate.tsx'
import { OneTime } from './secret.tsx'

export function TenantKeys(): JSX.Element {
  const loaded = useGet<Tenant>('/v1/tenants/me')
  const open = useSignal<'key' | 'secret' | null>(null)
  const close = () => {
    open.value = null
  }
  const path = `/v1/tenants/${encodeURIComponent(loaded.value?.tenant_id ?? '')}`
  return (
    <>
      <div class="grid">
        <Card title="This tenant">
          <LoadedView loaded={loaded} what="the tenant" lines={6}>
            {({ tenant_id, name, plan, owner_email, created_at }) => (
              <div class="card-body">
                <Facts
                  facts={[
                    { name: 'Name', value: <Text>{name}</Text> },
                    { name: 'Plan', value: <Badge tone="neutral">{plan}</Badge> },
                    { name: 'Owner', value: <Text>{owner_email}</Text> },
                    { name: 'Created', value: <Time at={created_at} /> },
                    { name: 'Id', value: <Code>{tenant_id}</Code> },
                  ]}
                />
                <h3 class="label keys-part">Admin key</h3>
                <p>
                  Manages everything here, this console included. It cannot be shown again, only replaced.
                </p>
                <div class="detail-actions">
                  <Button
                    onClick={() => {
                      open.value = 'key'
                    }}
                  >
                    Rotate the admin key…
                  </Button>
                </div>
                <h3 class="label keys-part">Signing secret</h3>
                <p>Receivers verify callbacks with it.</p>
                <div class="detail-actions">
                  <Button
                    onClick={() => {
                      open.value = 'secret'
                    }}
                  >
                    Rotate the signing secret…
                  </Button>
                </div>
              </div>
            )}
          </LoadedView>
        </Card>
        <Quotas loaded={loaded} />
      </div>
      {open.value === 'key' && (
        <Rotate<RotatedTenant>
          title="Rotate the admin key?"
          rotate={(grace_seconds) => ask('POST', `${path}/rotate-key`, { body: { grace_seconds } })}
          keyOf={({ admin_key }) => admin_key}
          onRotated={({ admin_key }) => keepKey(admin_key)}
          onClose={close}
        >
          <p>
            Whoever loses this key loses the tenant. Leave the old one some time: if the new one is lost on
            its way, you can still rotate again. This tab goes on with the new key; other tabs need it at
            their next sign-in.
          </p>
        </Rotate>
      )}
      {open.value === 'secret' && <RotateSecret path={path} onClose={close} />}
    </>
  )
}

function RotateSecret({ path, onClose }: { path: string; onClose: () => void }): JSX.Element {
  const rotated = useSignal<TenantWithSecret | null>(null)
  const action = useAction()
  const confirm = async () => {
    rotated.value = await action.run(() => ask<TenantWithSecret>('POST', `${path}/rotate-signing-secret`))
  }
  if (rotated.value) {
    const secrets = [{ name: 'Signing secret', text: rotated.value.signing_secret }]
    return (
      <OneTime key="new" title="The new signing secret" onClose={onClose} {...{ secrets }}>
        <p>
          For 24 hours callbacks carry a signature of the old secret as well. Change over within that time.
        </p>
      </OneTime>
    )
  }
  return (
    <Dialog key="ask" title="Rotate the signing secret?" onClose={() => action.busy || onClose()}>
      <p>
        Every receiver needs the new secret within 24 hours; until then the old one signs beside it. Rotating
        twice within that time ends the oldest at once.
      </p>
      {action.problem && <ErrorBox problem={action.problem} />}
      <div class="dialog-buttons">
        <span data-focus>
          <Button onClick={onClose}>Go back</Button>
        </span>
        <Button kind="danger" busy={action.busy} onClick={() => void confirm()}>
          Rotate
        </Button>
      </div>
    </Dialog>
  )
}
