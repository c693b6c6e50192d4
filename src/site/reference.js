// The API reference of /docs/reference, drawn from /openapi.json by Swagger UI. Keys stay in this page: nothing is stored.

const scheme = matchMedia('(prefers-color-scheme: dark)')
/** The choice that was made in the console or on another page, or that of the device. */
const is_dark = () => {
  const chosen = chosenTheme()
  return chosen === 'dark' || (chosen !== 'light' && scheme.matches)
}
const follow = () => document.documentElement.classList.toggle('dark-mode', is_dark())
scheme.addEventListener('change', follow)
addEventListener('storage', follow)
follow()

const place = document.querySelector('#reference')
try {
  const answer = await fetch('../openapi.json')
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`)
  const spec = await answer.json()
  // Calls go to where this page came from, by whatever name: the policy allows nothing else.
  spec.servers = [{ url: new URL('..', location.href).href.replace(/\/$/, '') }]
  window.SwaggerUIBundle({
    spec,
    domNode: place,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    plugins: [securitySchemesAsTheyAre],
  })
} catch (error) {
  place.textContent = `The reference cannot be shown: ${error.message}. The document itself is at /openapi.json.`
}

/** Null without a choice, and where the browser refuses its storage to the page. */
function chosenTheme() {
  try {
    return localStorage.getItem('waystation.theme')
  } catch {
    return null
  }
}

/**
 * The first thing that Swagger UI asks for: the schemes with their references resolved. They hold none, and to look for
 * some it reads the whole document, which stops the page for a second or more.
 */
function securitySchemesAsTheyAre() {
  const requestResolvedSubtree =
    (original, { specActions, specSelectors }) =>
    (path) => {
      const schemes = path.join(' ') === 'components securitySchemes' && specSelectors.specJson().getIn(path)
      return schemes ? specActions.updateResolvedSubtree(path, schemes.toJS()) : original(path)
    }
  return { statePlugins: { spec: { wrapActions: { requestResolvedSubtree } } } }
}
