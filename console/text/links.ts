// Stored text that may become a link.

/** Null unless the whole text is one http or https URL: `javascript:` and its like never become links. */
export function linkable(text: string): string | null {
  if (!/^https?:\/\/\S+$/i.test(text)) return null
  const url = urlOf(text)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url.href : null
}

/** Null where the text is part of a URL, or another text. `URL.parse` and `URL.canParse` are younger than browsers that are still in use. */
export function urlOf(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
