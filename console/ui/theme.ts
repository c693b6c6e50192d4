// The theme: light, dark, or the setting of the device.

import { effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const place = 'waystation.theme'

export const theme = signal<Theme>(stored())

/** True while the dark theme is on the screen. */
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
    // Without storage the choice lasts until the page is left.
  }
}

function stored(): Theme {
  try {
    return themes.find((name) => name === localStorage.getItem(place)) ?? 'system'
  } catch {
    return 'system'
  }
}
