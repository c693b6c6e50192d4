// Secrets that the service answers once: a new key, its link. They stand above every page until they are saved.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { forget, isLeft, missing_of, type OneTimeSecret, one_time, type Secret } from '../api/one-time.ts'
import { admin_key, tenantName } from '../api/session.ts'
import { Button, Copy, Text } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { useStay, useWarning } from '../ui/leaving.ts'
import './keys.css'

/** One after the other, whichever page is shown, also when the session that asked for them has ended. */
export function OneTimeSecrets() {
  useWarning(one_time.value.length > 0)
  const next = one_time.value.find(({ shown }) => shown !== null)
  return next ? <OneTime key={next.id} secret={next} /> : null
}

/** Escape, a click beside the dialog, or "back" asks first: a secret that is closed by mistake is lost. */
function OneTime({ secret }: { secret: OneTimeSecret }) {
  const asked = useSignal(false)
  const { title, secrets, about } = secret.shown!
  const is_left = isLeft(secret)
  const verb = is_left ? 'I have saved it' : 'Done'
  const close = () => {
    if (asked.peek()) forget(secret)
    asked.value = true
  }
  useStay(true, close)
  return (
    <Dialog title={is_left ? <OfTenant {...secret}>{title}</OfTenant> : title} onClose={close}>
      {is_left && <Left {...secret} />}
      <p>Copy it now: it is shown here once, and never again.</p>
      {secrets.map(({ name, text }, i) => (
        <SecretLine key={name} {...{ name, text }} first={i === 0} />
      ))}
      {about && <p>{about}</p>}
      <p class="muted small secret-note" role="status">
        {asked.value && `Have you saved it? Press Escape once more, or ${verb}, to close.`}
      </p>
      <div class="dialog-buttons parts">
        <Button text={verb} kind="primary" onClick={() => forget(secret)} />
      </div>
    </Dialog>
  )
}

function OfTenant({ tenant_name, children }: Pick<OneTimeSecret, 'tenant_name'> & { children: string }) {
  return (
    <>
      {children}
      {tenant_name && (
        <>
          {' '}
          of <Text>{tenant_name}</Text>
        </>
      )}
    </>
  )
}

/** Behind it there is the sign-in, or the session of another tenant. */
function Left({ tenant_name }: OneTimeSecret) {
  const here = tenantName()
  if (admin_key.value === null)
    return <p class="notice">This tab has been signed out since it was asked for.</p>
  if (here === tenant_name) return null
  return (
    <p class="notice">
      It is not of <Text>{here}</Text>, the tenant that this tab is signed in to now.
    </p>
  )
}

/** On the sign-in page, to which a sign-out in another tab led, or "back" from a sign-up. */
export function OnItsWay() {
  const coming = one_time.value.find(({ shown }) => shown === null)
  if (coming) {
    return (
      <p class="notice" role="status">
        <OfTenant {...coming}>A new key or secret</OfTenant> is on its way, and is shown here when it comes.
        Keep this tab open.
      </p>
    )
  }
  if (missing_of.value === null) return null
  return (
    <p class="notice" role="alert">
      <OfTenant tenant_name={missing_of.value}>A new key or secret</OfTenant> was asked for when the session
      ended, and did not come. It may have been made or not.
    </p>
  )
}

interface SecretLineProps extends Secret {
  /** The button has the focus when the dialog opens. */
  first?: boolean
  children?: ComponentChildren
}

/** A secret with a button that copies it. */
export function SecretLine({ name, text, first = false, children }: SecretLineProps) {
  return (
    <div class="secret">
      <p class="label">{name}</p>
      <div class="secret-line">
        <code class="code">{text}</code>
        <span data-focus={first ? '' : undefined}>
          <Copy text={text} what={`the ${name.charAt(0).toLowerCase()}${name.slice(1)}`} />
        </span>
      </div>
      {children && <p class="muted small">{children}</p>}
    </div>
  )
}
