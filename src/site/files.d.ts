// How Bun hands over files: their text, or the path at which they can be read, inside a compiled executable too.

declare module '*.md' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}

declare module '*/reference.js' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}

declare module '*/reference.css' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}

declare module 'swagger-ui-dist/*' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as a path
  export default path
}

declare module '*.png' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as a path
  export default path
}

declare module '*.svg' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as a path
  export default path
}

declare module '*.py' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}

declare module '*.sh' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: this is how Bun hands over a file imported as text
  export default text
}
