import { payloadOf } from './grant-times.ts'

/** The claims of a JWS, not verified. Undefined if they cannot be parsed. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(payloadOf(token), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
