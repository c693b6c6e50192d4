// How often a proof by many rounds is repeated: in `npm test` a few times, in `npm run proofs` until chance has had its say.

const all = process.env.PROOFS === 'all'

/** `some` in `npm test`, `many` in `npm run proofs`. Each round makes the same claims. */
export function rounds(some: number, many: number): number {
  return all ? many : some
}
