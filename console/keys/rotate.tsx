// The rotation of a key: a question, and then the new key, once.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useAction } from '../api/action.ts'
import { isOutcomeUnknown, type Result } from '../api/client.ts'
import { oneTime, type Shown } from '../api/one-time.ts'
import { setFrom, Time } from '../ui/basics.tsx'
import { Question } from '../ui/dialog.tsx'
import { Select } from '../ui/form.tsx'
import { useStayFor } from '../ui/leaving.ts'

interface RotationProps<T> {
  /** "Rotate the key of worker-1?" */
  title: string
  rotate: () => Promise<Result<T>>
  /** How the new key is shown. */
  shown: (rotated: T) => Shown
  onClose: () => void
  /** The consequences. */
  children: ComponentChildren
}

/** Any rotation: of a key, of the signing secret. */
export function Rotation<T>({ title, rotate, shown, onClose, children }: RotationProps<T>) {
  const action = useAction()
  useStayFor(action.busy)
  const confirm = () =>
    oneTime(async () => {
      const rotated = await action.run(rotate)
      if (rotated === null) return null
      onClose()
      return shown(rotated)
    })
  return (
    <Question verb="Rotate" onConfirm={() => void confirm()} {...{ title, action, onClose }}>
      {action.problem && isOutcomeUnknown(action.problem) && (
        <p>
          The key may have been rotated or not. Rotate it again to be sure: that makes another key, and ends
          an earlier grace period at once.
        </p>
      )}
      {children}
    </Question>
  )
}

const graces = [
  { value: '0', label: 'ends at once' },
  { value: '3600', label: 'works for another hour' },
  { value: '86400', label: 'works for another day' },
  { value: '604800', label: 'works for another 7 days' },
] as const

interface RotateProps<T> extends Omit<RotationProps<T>, 'rotate' | 'shown'> {
  rotate: (grace_seconds: number) => Promise<Result<T>>
  keyOf: (rotated: T) => string
  onRotated?: () => void
}

/** The rotation of a key. The old key may stay valid for a grace period. */
export function Rotate<T extends { previous_key_expires_at: string | null }>({
  rotate,
  keyOf,
  onRotated,
  children,
  ...props
}: RotateProps<T>) {
  const grace = useSignal<(typeof graces)[number]['value']>('3600')
  const rotateNow = async () => {
    const result = await rotate(Number(grace.peek()))
    if (result.ok) onRotated?.()
    return result
  }
  const shown = (rotated: T) => ({
    title: 'The new key',
    secrets: [{ name: 'Key', text: keyOf(rotated) }],
    about: oldKey(rotated.previous_key_expires_at),
  })
  return (
    <Rotation {...props} {...{ shown }} rotate={rotateNow}>
      {children}
      <Select label="The old key" value={grace.value} options={graces} onInput={setFrom(grace)} />
    </Rotation>
  )
}

function oldKey(ends_at: string | null): ComponentChildren {
  if (ends_at === null) return 'The old key no longer works.'
  return (
    <>
      The old key ends <Time at={ends_at} />.
    </>
  )
}
