// The states of a workflow.

export const statuses = ['waiting', 'failed', 'idle'] as const
export type Status = (typeof statuses)[number]

/** A workflow in which something waits and something failed is in both. Undefined: any. */
export function isIn(
  { waiting, failing }: { waiting: number; failing: number },
  status: Status | undefined,
): boolean {
  if (status === 'waiting') return waiting > 0
  if (status === 'failed') return failing > 0
  return status === undefined || (waiting <= 0 && failing <= 0)
}
