// The anchors of headings, for the service that renders the pages and for the search in the browser.

/** The id of the first heading with this text on a page, as code hosts make it: lower case, punctuation gone, spaces to dashes. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}
