// The sync client of the Python SDK, made of the async one: the same text without its waits.

/** Whole words of the async client, and theirs of the sync one. */
const words: Record<string, string> = {
  aclose: 'close',
  __aiter__: '__iter__',
  __aenter__: '__enter__',
  __aexit__: '__exit__',
}

/** The text of a module of `_sync`, of that in `_async`. */
export function syncText(text: string, file: string): string {
  const plain = text
    .replace(/^ *# async only\n[\s\S]*?^ *# end\n\n?/gm, '')
    .replace(/\n{1,2} *from \.platform import MaybeAwaitable(?=\n)/g, '')
    .replace('from .platform import MaybeAwaitable, ', 'from .platform import ')
    .replace(/\basync (def|for|with)\b/g, '$1')
    .replace(/\bawait /g, '')
    .replace(/\b__?a\w+__\b|\baclose\b/g, (word) => words[word] ?? word)
    .replace(/\bAsync(?=[A-Z])/g, '')
  const settled = unwrapped(unwrapped(plain, 'MaybeAwaitable'), 'Awaitable').replace(
    /(from collections\.abc import .*)/,
    (line) => line.replace(/\bAwaitable, |, Awaitable\b/, '').replace('Generator, ', ''),
  )
  const left = /.*\b(await |async |Awaitable\b).*/.exec(settled)
  if (left) throw new Error(`${file} has something async left: ${left[0]}`)
  const head = `# Made of ../_async/${file} by scripts/clients.ts: do not edit.\n`
  // Below the docstring of the module.
  const end = settled.indexOf('"""\n', 3) + 4
  return `${settled.slice(0, end)}\n${head}${settled.slice(end)}`.replace(
    /do not edit\.\n\n# Made from/,
    'do not edit.\n# Made from',
  )
}

/** `name[X]` is `X`, however deep its brackets are. */
function unwrapped(text: string, name: string): string {
  const start = text.search(new RegExp(`\\b${name}\\[`))
  if (start === -1) return text
  const open = start + name.length
  let depth = 0
  let at = open
  for (; at < text.length; at += 1) {
    if (text[at] === '[') depth += 1
    if (text[at] === ']') depth -= 1
    if (depth === 0) break
  }
  return unwrapped(text.slice(0, start) + text.slice(open + 1, at) + text.slice(at + 1), name)
}
