// Functions that the caller gives. One that would never run must not look as if it had.

/** The tags of functions with a yield, in every realm and behind `bind`. */
const never_run: readonly string[] = ['[object GeneratorFunction]', '[object AsyncGeneratorFunction]']

/** Throws TypeError, before anything is claimed for it, for what is not a function, and for one with a yield: a call of it runs nothing. */
export function checkRuns(name: string, given: unknown): void {
  if (typeof given !== 'function') throw new TypeError(`${name} must be a function`)
  if (never_run.includes(Object.prototype.toString.call(given)))
    throw new TypeError(`${name}: a function with a yield does nothing when it is called: give one without`)
}
