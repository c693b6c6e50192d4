// Parameters and answers that several routes share.

import { Type } from 'typebox'
import { JsonObject, label_characters_max, Nullable, Part, Shape, Text } from '../contract/schemas.ts'

export const tag = 'Seal'

export const Size = (description: string, minimum = 0) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })
export const Proof = Type.Array(Type.String(), { description: 'Hashes, base64, in the order of RFC 6962.' })
export const Workflow = Type.Optional(Text(label_characters_max, 'A workflow, by its id.', { minLength: 1 }))

export const checkpoint_fields = {
  origin: Type.String({
    description: 'The name of the journal, and of the key that signs: waystation/ten_….',
  }),
  size: Type.Integer({ description: 'How many events the tree has: the number, seq, of its last.' }),
  root: Type.String({ description: 'The root of the tree, base64.' }),
  note: Type.String({ description: 'The checkpoint as a signed note, c2sp.org/tlog-checkpoint.' }),
  keys: Type.Array(Type.String(), {
    description: 'Public keys, name+hash+key; the one that signs comes first, then its predecessors.',
  }),
}

export const Event = Shape('SealedEvent', 'An event as it was sealed.', {
  ...{ id: Type.String(), seq: Type.Integer(), type: Type.String() },
  subject: Part('EventSubject', 'The thing that an event is about.', {
    kind: Type.String(),
    id: Type.String(),
  }),
  ...{ workflow_id: Nullable(Type.String()), workflow_seq: Nullable(Type.Integer()) },
  ...{ agent_id: Nullable(Type.String()), actor: Type.String(), request_id: Nullable(Type.String()) },
  at: Type.String(),
  data: JsonObject('Depends on the type of the event.'),
})
