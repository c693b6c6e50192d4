// The files of the console, of the approval page and of the rendered documentation, bundled from console/.

import { fileURLToPath } from 'node:url'

/** A file under /assets/. Its name holds a hash of its content, and begins with the entry that it belongs to. */
export interface BuiltFile {
  name: string
  text: string
}

const folder = fileURLToPath(new URL('../../console/', import.meta.url))

export async function buildConsole(): Promise<BuiltFile[]> {
  const { outputs } = await Bun.build({
    entrypoints: ['console.tsx', 'approve.tsx', 'docs.ts'].map((name) => `${folder}${name}`),
    root: folder,
    target: 'browser',
    format: 'iife',
    minify: true,
    sourcemap: 'none',
    naming: '[name]-[hash].[ext]',
    jsx: { runtime: 'automatic', importSource: 'preact', development: false },
  })
  return Promise.all(
    outputs.map(async (output) => ({ name: output.path.replace(/^.*[\\/]/, ''), text: await output.text() })),
  )
}
