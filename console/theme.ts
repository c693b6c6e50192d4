// Light, dark, or as the device says.

import { effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const place = 'waystation.theme'

export const theme = signal<Theme>(stored())

/** Which of the two is on the screen. */
export const dark = signal(false)

const preference = matchMedia('(prefers-color-scheme: dark)')
preference.addEventListener('change', apply)
effect(apply)

function apply(): void {
  const chosen = theme.value
  if (chosen === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
  dark.value = chosen === 'system' ? preference.matches : chosen === 'dark'
}

export function choose(next: Theme): void {
  theme.value = next
  try {
    localStorage.setItem(place, next)
  } catch {
    // Without storage the choice holds until the page is left.
  }
}

function stored(): Theme {
  try {
    return themes.find((name) => name === localStorage.getItem(place)) ?? 'system'
  } catch {
    return 'system'
  }
}
