// A double click counts where it began: what came below the pointer after its first half, such as the answer to a question
// that has just opened, was not meant. So does a key that is held down.

/** The control under the first half, and its text: with another one it does another thing, as Pause and Resume. */
let first: Element | null = null
let text: string | null = null

document.addEventListener(
  'click',
  (event) => {
    const clicked = controlAt(event.target)
    // A key has no count of clicks.
    if (event.detail <= 1) {
      first = clicked
      text = textOf(clicked)
    } else if (clicked !== first || textOf(clicked) !== text) {
      event.preventDefault()
      event.stopPropagation()
    }
  },
  { capture: true },
)

/** Enter that is held down presses once. What has come below the focus meanwhile, such as a form, was not meant. */
document.addEventListener(
  'keydown',
  (event) => {
    const writes = event.target instanceof HTMLTextAreaElement
    if (event.key === 'Enter' && event.repeat && !writes) event.preventDefault()
  },
  { capture: true },
)

function textOf(control: Element | null): string | null {
  return control instanceof HTMLButtonElement ? control.textContent : null
}

/** A label stands for its field: the click on it is followed by one on the field. */
function controlAt(target: EventTarget | null): Element | null {
  if (!(target instanceof Element)) return null
  const found = target.closest('a, button, input, label, select, summary, textarea')
  return found instanceof HTMLLabelElement ? found.control : found
}
