// The events of the seal.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'

export const events = declareEvents({
  'seal.checkpoint': {
    about:
      'A checkpoint of the journal was kept. Whoever keeps its note elsewhere finds later changes of what was before it.',
    subject: 'seal',
    data: {
      size: Type.Integer({ description: 'How many events the tree has.' }),
      root: Type.String({ description: 'Its root, base64.' }),
      note: Type.String({ description: 'The signed note.' }),
    },
  },
})
