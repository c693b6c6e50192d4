// The files of the API reference beside its page, and the images of the other pages. Imported at the first request for one of them.

import library_style_path from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import library_script_path from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import approve_path from '../../docs/images/approve.png' with { type: 'file' }
import concepts_path from '../../docs/images/concepts.svg' with { type: 'file' }
import overview_path from '../../docs/images/overview.png' with { type: 'file' }
import own_style from './reference.css' with { type: 'text' }
import own_script from './reference.js' with { type: 'text' }

export const assets = {
  library_script: () => Bun.file(library_script_path).bytes(),
  library_style: () => Bun.file(library_style_path).bytes(),
  approve: () => Bun.file(approve_path).bytes(),
  concepts: () => Bun.file(concepts_path).bytes(),
  overview: () => Bun.file(overview_path).bytes(),
  own_script: () => own_script,
  own_style: () => own_style,
}
