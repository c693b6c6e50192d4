// The secrets of the service: its own, and what they seal.

import {
  beginFileRotation,
  endFileRotation,
  existingSecrets,
  foundFile,
  foundKeys,
  keepSecret,
  keptKeys,
  keptSecret,
} from './kept-service.ts'
import { openableSecrets, rotateKey, secretsOf } from './rotation-service.ts'
import { cursorKeyUnder, secretsUnder } from './sealer-service.ts'

export type { KeptSecret, SecretKeys } from './kept-service.ts'
export {
  beginFileRotation,
  cursorKeyUnder,
  endFileRotation,
  existingSecrets,
  foundFile,
  foundKeys,
  keepSecret,
  keptKeys,
  keptSecret,
  openableSecrets,
  rotateKey,
  secretsOf,
  secretsUnder,
}
