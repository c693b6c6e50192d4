// uPlot formats numbers in the browser's language as soon as it is loaded, and some browsers name one that Intl does not
// take, such as en-US@posix in a container. Imported before it.

try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' })
}
