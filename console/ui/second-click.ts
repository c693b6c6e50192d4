// A double click counts where it began: what came below the pointer after its first half, such as the answer to a question
// that has just opened, was not meant. So does Enter that is held down or pressed twice.

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

/** Two presses within this time are one intention, as two clicks are. */
const quick_ms = 500

/** Where Enter was pressed last, if nothing else was done since. */
let entered: { at_ms: number; control: Element | null; text: string | null } | null = null
/** When Escape was. */
let escaped_at_ms = Number.NEGATIVE_INFINITY

const forget = (event: Event) => {
  const key = event instanceof KeyboardEvent ? event.key : null
  if (key !== 'Enter') entered = null
  if (key !== 'Escape') escaped_at_ms = Number.NEGATIVE_INFINITY
}
for (const done of ['keydown', 'input', 'pointerdown'])
  document.addEventListener(done, forget, { capture: true })

/**
 * Enter counts where it began, too. What has come below the focus since, such as a form, is not sent by Enter that is held down or
 * quickly pressed again.
 */
document.addEventListener(
  'keydown',
  (event) => {
    if (event.key !== 'Enter') return
    if (event.repeat) {
      if (!(event.target instanceof HTMLTextAreaElement)) event.preventDefault()
      return
    }
    const control = controlAt(event.target)
    const is_quick = entered !== null && event.timeStamp - entered.at_ms < quick_ms
    if (is_quick && (control !== entered?.control || textOf(control) !== entered?.text))
      event.preventDefault()
    else entered = { at_ms: event.timeStamp, control, text: textOf(control) }
  },
  { capture: true },
)

/** Escape that closes a question, or asks whether a secret is saved, does not go on to close what is behind it, or the secret. */
document.addEventListener(
  'keydown',
  (event) => {
    if (event.key !== 'Escape') return
    if (event.repeat || event.timeStamp - escaped_at_ms < quick_ms) event.preventDefault()
    else escaped_at_ms = event.timeStamp
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
