// Programs that scripts need beside Bun: a script that lacks one ends with a sentence.

/** Ends with 1 unless the program is there, by its name or its path. `get`: how to get it. */
export function needProgram(script: string, program: string, get: string): void {
  if (Bun.which(program) === null) stop(`${script} needs ${program}, which is not installed: ${get}`)
}

/**
 * Ends with 1, too, for a version older than this one, such as 1.21.0. `args` make the program say its version; one that says
 * none, as a build of one's own may, is taken.
 */
export function needVersion(
  script: string,
  [program, ...args]: [program: string, ...args: string[]],
  at_least: string,
  get: string,
): void {
  needProgram(script, program, get)
  const answer = Bun.spawnSync([program, ...args], { stderr: 'ignore' }).stdout.toString()
  const version = /\d+\.\d+\.\d+/.exec(answer)?.[0]
  if (version !== undefined && Bun.semver.order(version, at_least) < 0)
    stop(`${script} needs a newer ${program} than ${version}: ${get}`)
}

/** `python`: what it is called. Ends with 1 unless it is 3.10 or newer and can make environments. */
export function needPython(script: string, python: string): void {
  needProgram(script, python, 'install Python 3.10 or newer, or name one in PYTHON')
  const probe = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))'
  if (Bun.spawnSync([python, '-c', probe], { stderr: 'ignore' }).exitCode !== 0)
    stop(`${script} needs Python 3.10 or newer with venv, and ${python} is not: name another in PYTHON`)
}

export function stop(sentence: string): never {
  console.error(sentence)
  process.exit(1)
}
