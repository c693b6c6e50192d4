/** The markup of a block. A language that is not known here has none. */
export function highlighted(code: string, language: string): string
