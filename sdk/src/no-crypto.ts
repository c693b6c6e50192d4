// In the place of node-crypto.ts where the bundler is that of React Native: Metro refuses an import whose name it cannot read.

/** Throws TypeError. */
export async function nodeCrypto(): Promise<Crypto> {
  throw new TypeError(
    'There is no crypto here: import a polyfill of crypto.getRandomValues first, such as react-native-get-random-values.',
  )
}
