// The crypto of Node 18, which has it as a module only. In bundles of Metro no-crypto.ts stands here: see package.json.

/**
 * Its name is put together and the comments stand there so that no bundler looks for it: webpack would put a function that always
 * throws in the place of this import.
 */
export async function nodeCrypto(): Promise<Crypto> {
  const name = ['node', 'crypto'].join(':')
  const { webcrypto } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as {
    webcrypto: Crypto
  }
  return webcrypto
}

/**
 * Put around the name of that import by the compiler, whose own helper is for names of files: of it rollup warns, and terser
 * makes an import with two arguments, which is refused.
 * @internal
 */
export function __rewriteRelativeImportExtension(name: string): string {
  return name
}
