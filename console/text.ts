// Stored text as it may be shown.

/** What reorders or hides what stands around it, save line breaks and tabs. */
const deceiving = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Text whose order on the screen is that of its characters: controls and overrides are shown, not obeyed. */
export function shown(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(deceiving, (character) => {
    return `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`
  })
}

/** `12,345`. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** Who settled a checkpoint, in words. */
export function resolver(resolved_by: string | null): string {
  if (resolved_by === null) return 'nobody'
  if (resolved_by === 'admin') return 'an administrator'
  if (resolved_by === 'timeout') return 'the time-out'
  const [kind, id] = [resolved_by.slice(0, resolved_by.indexOf(':')), shown(resolved_by.replace(/^\w+:/, ''))]
  return kind === 'agent' ? `the agent ${id}` : `the approval key ${id}`
}
