// Stored text that may become a link.

/** Null unless the whole text is one http or https URL: `javascript:` and its like never become links. */
export function linkable(text: string): string | null {
  if (!/^https?:\/\/\S+$/i.test(text)) return null
  const url = URL.canParse(text) ? new URL(text) : null
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url.href : null
}
