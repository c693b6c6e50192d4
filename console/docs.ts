// The entry of the rendered documentation. The pages are whole without it: it adds the theme, the search, the menu of
// narrow screens, copying, and the place in the table of contents. It runs before the page is drawn.

import './ui/style.css'
import './ui/frame.css'
import './docs/frame.css'
import './docs/contents.css'
import './docs/article.css'
import './docs/code.css'
import './docs/search.css'
import './docs/print.css'
import { followReading } from './docs/contents.ts'
import { addCopying } from './docs/copying.ts'
import { openMenu } from './docs/menu.ts'
import { root } from './docs/root.ts'
import { addSearch } from './docs/search-dialog.ts'
import { addThemes } from './docs/themes.ts'
import { showTheme, storedTheme } from './ui/theme-choice.ts'

showTheme(storedTheme())
document.documentElement.dataset.script = ''

document.addEventListener('DOMContentLoaded', () => {
  // Addresses of operations from when the API reference was at /docs.
  if (location.hash.startsWith('#/')) location.replace(`${root()}docs/reference${location.hash}`)
  addThemes()
  openMenu()
  addSearch()
  addCopying()
  followReading()
})
