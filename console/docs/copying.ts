// Copy buttons on code blocks, and links of headings that are copied when they are followed.

import { copyText } from '../ui/clipboard.ts'

const shown_ms = 2_000

export function addCopying(): void {
  const status = document.createElement('div')
  status.className = 'offscreen'
  status.role = 'status'
  document.body.append(status)
  const say = (text: string) => {
    status.textContent = text
  }
  for (const block of document.querySelectorAll<HTMLElement>('.code-block')) addButton(block, say)
  for (const anchor of document.querySelectorAll<HTMLAnchorElement>('.anchor')) {
    anchor.addEventListener('click', async () => {
      if (!(await copyText(anchor.href))) return
      say('Copied the link.')
      confirm(anchor, '✓', '#')
    })
  }
}

function addButton(block: HTMLElement, say: (text: string) => void): void {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'button copy'
  button.textContent = 'Copy'
  button.ariaLabel = 'Copy the code'
  button.addEventListener('click', async () => {
    const copied = await copyText(block.querySelector('code')!.textContent.trimEnd())
    say(copied ? 'Copied.' : 'The browser does not let this page copy. Select the code by hand.')
    confirm(button, copied ? 'Copied' : 'Select it by hand', 'Copy')
  })
  block.append(button)
}

function confirm(element: HTMLElement, done: string, before: string): void {
  element.dataset.copied = ''
  element.textContent = done
  setTimeout(() => {
    delete element.dataset.copied
    element.textContent = before
  }, shown_ms)
}
