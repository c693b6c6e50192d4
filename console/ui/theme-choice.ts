// The choice of a theme, which the console and the documentation share.

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

export const theme_titles: Record<Theme, string> = { system: 'Auto', light: 'Light', dark: 'Dark' }

const place = 'waystation.theme'

export function showTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function storeTheme(theme: Theme): void {
  try {
    localStorage.setItem(place, theme)
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}

export function storedTheme(): Theme {
  try {
    return themes.find((name) => name === localStorage.getItem(place)) ?? 'system'
  } catch {
    return 'system'
  }
}
