// Safari gives no focus to a button, a link or a box that is clicked, other browsers do. Keys then went on from elsewhere, and a
// dialog had nothing to give the focus back to.

/** Safari would draw a ring around what a script gives the focus to. The types do not know `focusVisible` yet. */
const without_ring = { preventScroll: true, focusVisible: false }

document.addEventListener(
  'click',
  (event) => {
    const { target, defaultPrevented } = event
    if (defaultPrevented || !(target instanceof Element)) return
    const control = target.closest<HTMLElement>('a[href], button, summary, input')
    if (!control || control.contains(document.activeElement) || isByEnter(event, control)) return
    control.focus(without_ring)
  },
  { capture: true },
)

/** Enter in a field clicks the button of its form, too. The focus stays where somebody writes. */
function isByEnter({ detail }: MouseEvent, control: HTMLElement): boolean {
  const is_by_pointer = detail > 0
  if (is_by_pointer || !(control instanceof HTMLButtonElement)) return false
  return control.form?.contains(document.activeElement) ?? false
}
