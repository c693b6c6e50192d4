// Rotating a key: how long the old one lives on, a second look, and the new one once.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useAction } from '../action.ts'
import { isUncertain, type Problem, type Result } from '../api.ts'
import { Button, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/form.tsx'
import { ErrorBox } from '../ui/states.tsx'
import { OneTime } from './secret.tsx'

const graces = [
  { value: '0', label: 'ends at once' },
  { value: '3600', label: 'works for another hour' },
  { value: '86400', label: 'works for another day' },
  { value: '604800', label: 'works for another 7 days' },
] as const
type Grace = (typeof graces)[number]['value']

interface Rotated {
  previous_key_expires_at: string | null
}

interface RotateProps<T extends Rotated> {
  /** "Rotate the key of worker-1". */
  title: string
  rotate: (grace_seconds: number) => Promise<Result<T>>
  keyOf: (rotated: T) => string
  onRotated?: (rotated: T) => void
  onClose: () => void
  /** What is to be known before. */
  children: ComponentChildren
}

export function Rotate<T extends Rotated>(props: RotateProps<T>): JSX.Element {
  const { title, rotate, keyOf, onRotated, onClose, children } = props
  const grace = useSignal<Grace>('3600')
  const rotated = useSignal<T | null>(null)
  const action = useAction()
  const confirm = async () => {
    const answer = await action.run(() => rotate(Number(grace.peek())))
    if (answer === null) return
    onRotated?.(answer)
    rotated.value = answer
  }
  if (rotated.value) {
    const { previous_key_expires_at } = rotated.value
    return (
      <OneTime
        key="new"
        title="The new key"
        secrets={[{ name: 'Key', text: keyOf(rotated.value) }]}
        onClose={onClose}
      >
        <p>
          {previous_key_expires_at === null ? (
            'The old key no longer works.'
          ) : (
            <>
              The old key ends <Time at={previous_key_expires_at} />.
            </>
          )}
        </p>
      </OneTime>
    )
  }
  return (
    <Dialog key="ask" title={title} onClose={() => action.busy || onClose()}>
      {children}
      <Select
        label="The old key"
        value={grace.value}
        options={graces}
        onChange={(value) => {
          grace.value = value
        }}
      />
      {action.problem && <ErrorBox problem={action.problem} />}
      {action.problem && isUncertain(action.problem) && (
        <p>
          The key may have been rotated or not. Rotate it again to be sure: that makes another key, and ends
          an earlier grace at once.
        </p>
      )}
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

interface ConfirmProps {
  title: string
  verb: string
  work: () => Promise<Result<unknown>>
  onDone: () => void
  onClose: () => void
  children: ComponentChildren
}

/** A second look before something that cannot be undone. */
export function Confirm({ title, verb, work, onDone, onClose, children }: ConfirmProps): JSX.Element {
  const action = useAction()
  const confirm = async () => {
    // What is gone already, by whomever, is what was wanted; an empty answer is undefined.
    const done = await action.run(async () => {
      const result = await work()
      if (!result.ok && !isGone(result.problem)) return result
      return { ok: true as const, value: true, text: '' }
    })
    if (done) onDone()
  }
  return (
    <Dialog title={title} onClose={() => action.busy || onClose()}>
      {children}
      {action.problem && <ErrorBox problem={action.problem} />}
      <div class="dialog-buttons">
        <span data-focus>
          <Button onClick={onClose}>Go back</Button>
        </span>
        <Button kind="danger" busy={action.busy} onClick={() => void confirm()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  )
}

/** As the service says it: a 404 of something in front of it tells nothing. */
function isGone({ code }: Problem): boolean {
  return code.endsWith('_NOT_FOUND') && code !== 'ROUTE_NOT_FOUND'
}
