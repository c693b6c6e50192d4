// The navigation on narrow screens, behind a button.

export function openMenu(): void {
  const side = document.querySelector<HTMLElement>('.side')!
  const button = side.querySelector<HTMLButtonElement>('.menu-button')!
  const show = (open: boolean) => {
    side.dataset.open = String(open)
    button.ariaExpanded = String(open)
  }
  button.hidden = false
  button.addEventListener('click', () => show(side.dataset.open !== 'true'))
  side.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || side.dataset.open !== 'true') return
    show(false)
    button.focus()
  })
  showCurrent(side.querySelector('nav')!)
}

/** Scrolls the navigation alone, so that the current page is in its view. */
function showCurrent(nav: HTMLElement): void {
  const current = nav.querySelector<HTMLElement>('[aria-current]')
  if (!current) return
  const below = current.getBoundingClientRect().bottom - nav.getBoundingClientRect().bottom
  if (below > 0) nav.scrollTop += below + nav.clientHeight / 3
}
