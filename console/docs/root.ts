/** From this page to the root of the service: ``, `../`, `../../`. */
export function root(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="root"]')?.content ?? ''
}
