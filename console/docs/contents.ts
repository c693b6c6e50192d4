// The table of contents of the page: open where it stands beside the page, with the section that is read marked.

export function followReading(): void {
  focusScrollers()
  const contents = document.querySelector<HTMLDetailsElement>('.contents')
  if (!contents) return
  const beside = matchMedia('(min-width: 1160px)')
  const open = () => {
    contents.open = beside.matches
  }
  open()
  beside.addEventListener('change', open)
  contents.addEventListener('click', ({ target }) => {
    if (target instanceof HTMLAnchorElement && !beside.matches) contents.open = false
  })
  markSection(contents)
}

function markSection(contents: HTMLDetailsElement): void {
  const links = [...contents.querySelectorAll<HTMLAnchorElement>('a')]
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1)))!)
  let marked: HTMLAnchorElement | undefined
  const mark = () => {
    // The last heading that has gone past the upper part of the window.
    const at = headings.findLastIndex((heading) => heading.getBoundingClientRect().top < 120)
    const next = links[at]
    if (next === marked) return
    marked?.removeAttribute('aria-current')
    next?.setAttribute('aria-current', 'true')
    marked = next
    if (next) keepInView(contents, next)
  }
  addEventListener('scroll', mark, { passive: true })
  mark()
}

function keepInView(contents: HTMLElement, link: HTMLElement): void {
  const [outer, inner] = [contents.getBoundingClientRect(), link.getBoundingClientRect()]
  if (inner.top < outer.top + 40) contents.scrollTop -= outer.top + 40 - inner.top
  if (inner.bottom > outer.bottom - 40) contents.scrollTop += inner.bottom - outer.bottom + 40
}

/** Boxes that scroll sideways take the focus, so that they can be scrolled with the keyboard. */
function focusScrollers(): void {
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const scroller = target.closest<HTMLElement>('.scroller')!
      if (scroller.scrollWidth > scroller.clientWidth) scroller.tabIndex = 0
      else scroller.removeAttribute('tabindex')
    }
  })
  for (const scroller of document.querySelectorAll('.scroller')) {
    sized.observe(scroller)
    // An image has its size when it has come.
    if (scroller.firstElementChild) sized.observe(scroller.firstElementChild)
  }
}
