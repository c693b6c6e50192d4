// The secrets of the service: its own, and what they seal.

import * as kept from './kept-service.ts'
import * as rotation from './rotation-service.ts'
import * as sealer from './sealer-service.ts'

export type { KeptSecret, SecretKeys } from './kept-service.ts'
export type { KeyState } from './rotation-service.ts'
export const { existingSecrets, foundFile, foundKeys, keepSecret, keptKeys, keptSecret } = kept
export const { beginFileRotation, endFileRotation } = kept
export const { hasServed, openableSecrets, requireOpenable, rotateKey, secretsOf } = rotation
export const { cursorKeyUnder, secretsUnder } = sealer
