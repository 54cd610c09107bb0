import { SignJWT } from 'jose'
import type { Customer } from './customers.ts'

/** What `CreateInstallation` or `RotateIdentitySecret` returned. It must stay on the backend. */
export interface IdentitySecret {
  kid: string
  secret: string
}

/** The contract allows 300 s. The widget uses the assertion at once, so a shorter time suffices. */
const lifetimeSeconds = 120

/**
 * Creates a function that signs assertions of the signed-in customer (section 2.4 of the
 * specification). Each assertion can be used only once. Operators see `ctx` beside the name; it
 * grants no permission.
 */
export function createAssertionSigner({ kid, secret }: IdentitySecret, siteKey: string) {
  const key = new TextEncoder().encode(secret)
  return ({ id, name, plan, orders }: Customer): Promise<string> => {
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ name, ctx: { plan, orders } })
      .setProtectedHeader({ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid })
      .setAudience(siteKey)
      .setSubject(id)
      .setJti(crypto.randomUUID())
      .setIssuedAt(now)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(key)
  }
}
