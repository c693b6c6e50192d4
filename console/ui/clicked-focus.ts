// Safari gives no focus to a button, a link or a box that is clicked, other browsers do. Keys then went on from elsewhere, and a
// dialog had nothing to give the focus back to.

document.addEventListener(
  'click',
  ({ target, defaultPrevented }) => {
    if (defaultPrevented || !(target instanceof Element)) return
    const control = target.closest<HTMLElement>('a[href], button, summary, input')
    if (control && !control.contains(document.activeElement)) control.focus({ preventScroll: true })
  },
  { capture: true },
)
