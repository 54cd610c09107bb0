import { payloadOf } from '../session/grant-times.ts'

/** Returns the claims of a JWS without verifying them, or undefined if the JWS cannot be parsed. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(payloadOf(token), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
