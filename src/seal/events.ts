// The events of the seal.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'

export const events = declareEvents({
  'seal.restored': {
    about:
      'The service was restored from a backup. What the original journal had after this point is not in this one, whose checkpoints name the new epoch in their origin.',
    subject: 'seal',
    data: {
      epoch: Type.Integer({ description: 'The epoch that begins: 2 after the first restore.' }),
      backup_at: Nullable(Time('When the copy was made; null when that is unknown.')),
    },
  },
  'seal.checkpoint': {
    about:
      'The checkpoint of the hour was kept. Keep its note elsewhere: it reveals any later change to what came before it.',
    subject: 'seal',
    data: {
      size: Type.Integer({ description: 'How many events the tree has.' }),
      root: Type.String({ description: 'Its root, base64.' }),
      note: Type.String({ description: 'The signed note.' }),
    },
  },
})
