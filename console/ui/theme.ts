// The theme: light, dark, or the setting of the device.

import { effect, signal } from '@preact/signals'
import { showTheme, storedTheme, storeTheme, type Theme } from './theme-choice.ts'

export const theme = signal<Theme>(storedTheme())

/** True while the dark theme is on the screen. */
export const dark = signal(false)

const preference = matchMedia('(prefers-color-scheme: dark)')
preference.addEventListener('change', apply)
effect(apply)

function apply(): void {
  const chosen = theme.value
  showTheme(chosen)
  dark.value = chosen === 'system' ? preference.matches : chosen === 'dark'
}

export function choose(next: Theme): void {
  theme.value = next
  storeTheme(next)
}
