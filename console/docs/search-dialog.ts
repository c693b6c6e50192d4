// The dialog of the search: a field with a list of sections, used with the keyboard or the pointer.

import { type Found, loadSearch, type Search } from './search-index.ts'

export function addSearch(): void {
  const button = document.querySelector<HTMLButtonElement>('.search-button')!
  let dialog: HTMLDialogElement | undefined
  const open = () => {
    dialog ??= searchDialog()
    if (!dialog.open) dialog.showModal()
    dialog.querySelector('input')!.select()
  }
  button.hidden = false
  button.addEventListener('click', open)
  document.addEventListener('keydown', (event) => {
    const is_slash =
      event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !isField(event.target)
    const is_command = event.key === 'k' && (event.ctrlKey || event.metaKey)
    if (!is_slash && !is_command) return
    event.preventDefault()
    open()
  })
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
}

function searchDialog(): HTMLDialogElement {
  const dialog = element('dialog', { className: 'dialog search' })
  dialog.ariaLabel = 'Search the documentation'
  const input = element('input', {
    type: 'search',
    placeholder: 'Search the documentation',
    autocomplete: 'off',
  })
  input.spellcheck = false
  input.maxLength = 100
  input.role = 'combobox'
  input.ariaLabel = 'Search the documentation'
  input.ariaExpanded = 'true'
  input.ariaAutoComplete = 'list'
  input.setAttribute('aria-controls', 'found')
  const list = element('div', { id: 'found', className: 'found' })
  list.role = 'listbox'
  list.ariaLabel = 'Sections'
  const status = element('p', { className: 'search-status muted small' })
  status.role = 'status'
  dialog.append(input, list, status)
  dialog.addEventListener('click', ({ target }) => {
    const leaves = target instanceof Element && target.closest('a')
    if (target === dialog || leaves) dialog.close()
  })
  // Browsers otherwise empty the field first.
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    dialog.close()
  })
  document.body.append(dialog)
  listen(input, list, status)
  return dialog
}

function listen(input: HTMLInputElement, list: HTMLElement, status: HTMLElement): void {
  let loading: Promise<Search> | undefined
  const show = async () => {
    const words = input.value.trim()
    try {
      loading ??= loadSearch()
      const search = await loading
      // Other words were typed meanwhile.
      if (words !== input.value.trim()) return
      const found = words === '' ? [] : search(words)
      list.replaceChildren(...found.map(optionOf))
      choose(input, list, 0)
      status.textContent =
        words === '' ? 'Type a word: a route, a field, an error code, a setting.' : summary(found)
    } catch (error) {
      loading = undefined
      status.textContent = `The search cannot be loaded: ${(error as Error).message}. Try again.`
    }
  }
  input.addEventListener('input', show)
  input.addEventListener('keydown', (event) => moveBy(event, input, list))
  show()
}

function summary(found: readonly Found[]): string {
  if (found.length === 0) return 'Nothing found. Try fewer words, or a part of one.'
  return found.length === 1 ? '1 section' : `${found.length} sections`
}

function moveBy(event: KeyboardEvent, input: HTMLInputElement, list: HTMLElement): void {
  const at = [...list.children].findIndex((option) => option.ariaSelected === 'true')
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault()
    choose(input, list, at + (event.key === 'ArrowDown' ? 1 : -1))
  } else if (event.key === 'Enter') {
    event.preventDefault()
    ;(list.children[at] as HTMLElement | undefined)?.click()
  }
}

/** Past either end comes the other one. */
function choose(input: HTMLInputElement, list: HTMLElement, at: number): void {
  const { length } = list.children
  const chosen = length === 0 ? -1 : (at + length) % length
  for (const [i, option] of [...list.children].entries()) option.ariaSelected = String(i === chosen)
  const option = list.children[chosen]
  input.setAttribute('aria-activedescendant', option?.id ?? '')
  option?.scrollIntoView({ block: 'nearest' })
}

function optionOf({ href, page, group, heading, excerpt, words }: Found, at: number): HTMLElement {
  const option = element('a', { href, id: `found-${at}`, className: 'found-section', tabIndex: -1 })
  option.role = 'option'
  const where = element('span', { className: 'muted small' })
  where.textContent = heading === page ? group : `${group} › ${page}`
  const title = element('span', { className: 'found-title' })
  title.append(...marked(heading, words))
  const text = element('span', { className: 'found-text muted' })
  text.append(...marked(excerpt, words))
  option.append(where, title, text)
  return option
}

/** The text with its words marked. */
function marked(text: string, words: readonly string[]): (string | HTMLElement)[] {
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  if (escaped.length === 0) return [text]
  return text.split(new RegExp(`(${escaped.join('|')})`, 'giu')).map((part, at) => {
    if (at % 2 === 0) return part
    const mark = element('mark', {})
    mark.textContent = part
    return mark
  })
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties)
}
