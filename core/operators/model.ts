import { createHash } from 'node:crypto'

/** An operator's session in the console. Its secret is in the cookie of the operator's browser. */
export interface ConsoleSession {
  /** Hash of the secret. */
  id: string
  workspaceId: string
  /** Id of the operator. */
  operator: string
  /** Name that visitors see. */
  displayName: string
  scopes: string[]
  createdAt: Date
  expiresAt: Date
  /** Set for sessions that began at an OpenID Connect provider. */
  provider?: ProviderCheck
}

export type SignedInOperator = Pick<ConsoleSession, 'displayName' | 'operator'>

export interface ProviderCheck {
  /** Issuer of the refresh token. The token is sent to no other provider. */
  issuer: string
  /** Sealed refresh token. */
  sealed: string
  /** Time at which the claims are read again. */
  recheckAt: Date
}

/** A sign-in that has begun at an OpenID Connect provider. */
export interface SignInAttempt {
  /** Hash of the parameter `state`. */
  id: string
  /** Hash of the secret of the browser that began the sign-in. */
  browserId: string
  /** Hash of the secret of the session that the browser had before. */
  replacedId?: string
  /** Issuer at which the sign-in began. */
  issuer?: string
  /** Sealed request, with nonce and code verifier. */
  sealed: string
  expiresAt: Date
}

/** A link that signs in one operator once. */
export interface SignInLink {
  /** Hash of the link's secret. */
  id: string
  workspaceId: string
  operator: string
  scopes: string[]
  expiresAt: Date
  /** Latest end of a session that the link creates. */
  sessionEndsBy?: Date
}

export const linkLifetimeMs = 600_000
/** Maximum lifetime of a console session: a working day. */
export const sessionLifetimeMs = 12 * 3_600_000

/** Returns the id under which a secret is stored: its hash, so that the database has no secrets. */
export const secretId = (secret: string) => createHash('sha256').update(`console ${secret}`).digest('base64url')
