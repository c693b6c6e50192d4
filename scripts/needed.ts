// Programs that scripts need beside Bun: a script that lacks one ends with a sentence.

/** Ends with 1 unless the program is there, by its name or its path. `get`: how to get it. */
export function needProgram(script: string, program: string, get: string): void {
  if (Bun.which(program) === null) stop(`${script} needs ${program}, which is not installed: ${get}`)
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
