// Lists, a page or all pages.

import type { Page, Pages } from '../sdk/src/index.ts'
import type { Cli } from './cli.ts'
import { shellWord } from './text.ts'

/** One page, or all of them as they come. */
export async function printList<T extends object>(
  cli: Cli,
  list: Pages<T>,
  columns: readonly string[],
  all: boolean,
): Promise<void> {
  if (!all) return printPage(cli, await list.page(), columns)
  for await (const { items } of list.pages()) printItems(cli, items, columns)
}

export function printPage<T extends object>(
  cli: Cli,
  page: Page<T>,
  columns: readonly string[],
  option = '--cursor',
): void {
  if (cli.out.json) {
    cli.out.value(page)
    return
  }
  cli.out.table(page.items, columns)
  const none = page.items.length === 0
  // After an empty page of messages there is nothing yet; one of a list may only have skipped too many other rows.
  if (page.next_cursor === null || (none && option === '--after')) {
    if (none) cli.out.note('There are none.')
    return
  }
  cli.out.note(
    `${none ? 'None so far. ' : ''}There may be more: ${option} ${shellWord(page.next_cursor)}, or --all.`,
  )
}

export function printItems(cli: Cli, items: readonly object[], columns: readonly string[]): void {
  if (cli.out.json) for (const item of items) cli.out.jsonLine(item)
  else cli.out.table(items, columns)
}
