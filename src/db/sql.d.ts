declare module '*.sql' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}
