// Hints name the command as it was started: a `waystation` that is not installed would be no help.

import { generated } from './generated.ts'
import { shellWord } from './text.ts'

/** First words of the commands by hand; those of the operations are generated. */
export const own_words = ['serve', 'admin', 'login', 'logout', 'profiles', 'mcp', 'completion', 'verify']

const words = new Set([...own_words, ...generated.map(({ usage }) => usage.split(' ')[0]!)])
const named = new RegExp(`(?<![\\w./-])waystation(?= (?:[[<-]|(?:${[...words].join('|')})\\b))`, 'g')

/** The command as the launcher names it, as words for a shell. */
export function commandWords(command: string): string {
  return command === 'npx waystation' ? command : shellWord(command)
}

/** The text with this command wherever it says `waystation login` or the like. */
export function asStarted(text: string, command: string): string {
  return command === 'waystation' ? text : text.replace(named, () => command)
}
