// Syntax of code blocks, as classes: the policy of the pages allows no styles in the markup. JavaScript with types beside
// it, because the library's own types would bring those of a browser into the whole service.

import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'

hljs.registerLanguage('sh', bash)
hljs.registerLanguage('json', json)
hljs.registerLanguage('ts', typescript)
hljs.registerAliases(['js', 'typescript', 'javascript'], { languageName: 'ts' })
hljs.registerLanguage('python', python)
hljs.registerLanguage('nginx', nginx)
hljs.registerLanguage('ini', ini)
hljs.registerLanguage('yaml', yaml)

export function highlighted(code, language) {
  if (!hljs.getLanguage(language)) return Bun.escapeHTML(code)
  return hljs.highlight(code, { language, ignoreIllegals: true }).value
}
