// The events of the seal.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'

export const events = declareEvents({
  'seal.checkpoint': {
    about:
      'The checkpoint of the hour was kept. Keep its note elsewhere, and later changes of what was before it are found.',
    subject: 'seal',
    data: {
      size: Type.Integer({ description: 'How many events the tree has.' }),
      root: Type.String({ description: 'Its root, base64.' }),
      note: Type.String({ description: 'The signed note.' }),
    },
  },
})
