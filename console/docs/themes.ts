// The choice of the theme, the same as in the console.

import { showTheme, storedTheme, storeTheme, theme_titles, themes } from '../ui/theme-choice.ts'

export function addThemes(): void {
  const place = document.querySelector<HTMLElement>('.themes')!
  const buttons = themes.map((theme) => {
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = theme_titles[theme]
    button.addEventListener('click', () => {
      storeTheme(theme)
      showTheme(theme)
      press(theme)
    })
    return button
  })
  const press = (chosen: string) => {
    for (const [at, button] of buttons.entries()) button.ariaPressed = String(themes[at] === chosen)
  }
  press(storedTheme())
  place.append(...buttons)
  place.hidden = false
  // Chosen in another tab.
  addEventListener('storage', () => {
    showTheme(storedTheme())
    press(storedTheme())
  })
}
