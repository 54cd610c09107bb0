import { payloadOf } from './grant-times.ts'

/** What a JWS says, read and not verified; undefined where it cannot be read. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(payloadOf(token), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
