import { SignJWT } from 'jose'
import type { Customer } from './customers.ts'

/** What the installation's `RotateIdentitySecret` or `CreateInstallation` showed; in the demo it stands in `demo.json`. */
export interface IdentitySecret {
  kid: string
  /** UTF-8, as it was shown. Stays on the shop's backend. */
  secret: string
}

/** The contract allows 300; a token that is asked for when it is needed can do with less. */
const lifetimeSeconds = 120

/**
 * Signs who is logged in, for the widget to hand on (section 2.4 of the specification). A new one for each call: each counts
 * once. `ctx` is what an operator may see beside the name; it allows nothing.
 */
export function createAssertionSigner({ kid, secret }: IdentitySecret, siteKey: string) {
  const key = new TextEncoder().encode(secret)
  return ({ id, name, plan, orders }: Customer): Promise<string> => {
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ name, ctx: { plan, orders: orders.length } })
      .setProtectedHeader({ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid })
      .setAudience(siteKey)
      .setSubject(id)
      .setJti(crypto.randomUUID())
      .setIssuedAt(now)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(key)
  }
}
