/** A bundle that does not hold what it claims, with the reason as a sentence without its first capital and its full stop. */
export class Refused extends Error {
  override name = 'Refused'
}
