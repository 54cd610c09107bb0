import { createHash, randomBytes } from 'node:crypto'

/** An operator's account in a workspace. */
export interface Member {
  id: string
  /** Name that visitors see. */
  name: string
  /** In lower case. Absent if the account has no address. */
  mail?: string
  /** Absent for accounts of the OpenID Connect provider, whose claims name the scopes. */
  role?: Role
  state: 'active' | 'removed'
  joinedAt: Date
  /** Absent if nothing was chosen yet. */
  notifications?: Notifications
}

/** What an operator is told while not looking at the console. */
export interface Notifications {
  /** Whether anything is told. */
  isOn: boolean
  newConversation: boolean
  answerInMine: boolean
  /** 0 for never. */
  waitingMinutes: number
  detail: (typeof notificationDetails)[number]
  /** 0 for never. */
  mailMinutes: number
}

export const notificationDetails = ['nothing', 'name', 'text'] as const

/** The accounts of a workspace. They are one document, so that one write decides who is the last owner. */
export interface Team {
  workspaceId: string
  /** Number of changes. A write replaces only the team that it has read. */
  version: number
  members: Member[]
}

export type Role = 'owner' | 'operator' | 'viewer'

/** A public key of an account (WebAuthn). */
export interface Passkey {
  /** Id of the credential, in base64url. */
  id: string
  workspaceId: string
  operator: string
  name: string
  /** The public key, in base64url (COSE). */
  publicKey: string
  counter: number
  /** Origin of the console at which it was made. It signs in only there. */
  origin: string
  createdAt: Date
  usedAt?: Date
}

/** An operator's session in the console. Its secret is in the cookie of the operator's browser. */
export interface ConsoleSession {
  /** Hash of the secret. */
  id: string
  workspaceId: string
  operator: string
  /** Name that visitors see. */
  displayName: string
  scopes: string[]
  createdAt: Date
  expiresAt: Date
  /** How it began. */
  method: 'link' | 'invitation' | 'mail' | 'passkey' | 'provider' | 'token'
  /** Whether it is valid only while the account is active, with the account's name and role. */
  account?: true
  /** Token that made the link, or with which the operator signed in. If it is revoked, the session ends. */
  tokenId?: string
  /** Sealed push subscription of the browser. It ends with the session. */
  push?: { sealed: string }
  /** When the operator last looked at the console. */
  lookedAt?: Date
  /** The conversation that the console showed then. */
  looksAt?: string
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

/** A sign-in that has begun at an OpenID Connect provider or with a passkey, or a new passkey. */
export interface SignInAttempt {
  /** Hash of the parameter `state`, or of the challenge. */
  id: string
  /** Hash of the secret of the browser that began the sign-in, or id of the session of a new passkey. */
  browserId: string
  /** Hash of the secret of the session that the browser had before. */
  replacedId?: string
  /** Issuer at which the sign-in began. Absent for passkeys. */
  issuer?: string
  /** Sealed request, with nonce and code verifier. Absent for passkeys. */
  sealed?: string
  /** Origin of the console at which a new passkey is made. */
  origin?: string
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
  /** Token that made the link. If it is revoked, the link is refused. */
  tokenId?: string
  /** Latest end of a session that the link creates. */
  sessionEndsBy?: Date
  /** Set for a link that signs in nobody, and sets this mail address of the account `operator`. */
  newMail?: string
  /** Set for a link that signs in the account `operator`. Such a link has no scopes. */
  account?: {
    /** The account is created with this role, unless it exists. */
    role?: Role
    mail?: string
    /** Whether the account is the first owner's. */
    isFirst?: boolean
    /** Operator who invited, or undefined for links of the shell and mailed links. */
    invitedBy?: string
    createdAt: Date
  }
}

export const linkLifetimeMs = 600_000
export const invitationLifetimeMs = 7 * 86_400_000
/** Maximum lifetime of a console session without an account: a working day. */
export const sessionLifetimeMs = 12 * 3_600_000
/** Lifetime of a session of an account, which can be listed and ended. */
export const accountSessionLifetimeMs = 30 * 86_400_000

export const newSecret = () => randomBytes(32).toString('base64url')

/** The public id of a session or invitation: half of its id, which is the hash of its secret. */
export const publicIdOf = ({ id }: { id: string }) => id.slice(0, 22)

/** Returns the id under which a secret is stored: its hash, so that the database has no secrets. */
export const secretId = (secret: string) => createHash('sha256').update(`console ${secret}`).digest('base64url')
