import { randomBytes } from 'node:crypto'
import type { Core } from '../core.ts'
import { storedKey } from '../stored-key.ts'

const storedIdsKey = storedKey('ids', () => randomBytes(32).toString('base64url'))

/**
 * Returns the key with which the ids of browsers and verified visitors are hashed. The ids of known
 * visitors and their bans depend on it.
 */
export const idsKey = async (core: Core): Promise<Uint8Array> =>
  new Uint8Array(Buffer.from(await storedIdsKey(core), 'base64url'))
