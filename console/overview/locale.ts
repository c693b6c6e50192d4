// uPlot formats numbers in the browser's language as soon as it is loaded. Some browsers name a language that Intl does
// not accept, such as en-US@posix in a container. This file is imported before uPlot.

try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' })
}
