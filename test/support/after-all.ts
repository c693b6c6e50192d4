/** Run by setup.ts after the last test of the process. */
export const after_all: (() => Promise<void>)[] = []
