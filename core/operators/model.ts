import { createHash, randomBytes } from 'node:crypto'

export interface Member {
  id: string
  /** Name that visitors see. */
  name: string
  /** Mail goes to it. Lower case, unless the provider names it. */
  mail?: string
  /** Absent for accounts of the OpenID Connect provider, whose claims name the scopes. */
  role?: Role
  state: 'active' | 'removed'
  joinedAt: Date
  notifications?: Notifications
  /** Language of the console at which the operator last looked. Pushes and mails are in it. */
  language?: (typeof operatorLanguages)[number]
}

/** What an operator is told while not looking at the console. */
export interface Notifications {
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

export const operatorLanguages = ['en', 'de'] as const

/** The accounts of a workspace. They are one document, so that one write decides who is the last owner. */
export interface Team {
  workspaceId: string
  /** Number of changes. A write replaces only the version that it has read. */
  version: number
  members: Member[]
}

export type Role = 'owner' | 'operator' | 'viewer'

export interface Passkey {
  /** Id of the credential (WebAuthn), in base64url. */
  id: string
  workspaceId: string
  operator: string
  name: string
  /** Key in the format COSE, in base64url. */
  publicKey: string
  counter: number
  /** The passkey signs in only at this origin. */
  origin: string
  createdAt: Date
  usedAt?: Date
}

/** A session in the console. Its secret is in the cookie of the operator's browser. */
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
  method: 'link' | 'invitation' | 'mail' | 'passkey' | 'provider' | 'token'
  /** Whether it is valid only while the account is active, with the account's name and role. */
  account?: true
  /** Token that made the link, or with which the operator signed in. If it is revoked, the session ends. */
  tokenId?: string
  /** Sealed push subscription of the browser. */
  push?: { sealed: string }
  lookedAt?: Date
  /** The conversation that the console showed when the operator last looked. */
  looksAt?: string
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

/** A sign-in that has begun at a provider or with a passkey, or a new passkey. */
export interface SignInAttempt {
  /** Hash of the parameter `state`, or of the challenge. */
  _id: string
  /** Hash of the secret of the browser that began the sign-in, or id of the session of a new passkey. */
  browserId: string
  replacedId?: string
  /** Issuer at which the sign-in began. Absent for passkeys. */
  issuer?: string
  /** Sealed request with nonce and code verifier. Absent for passkeys. */
  sealed?: string
  /** Origin of the console at which a new passkey is made. Absent for sign-ins. */
  origin?: string
  expiresAt: Date
}

export interface SignInLink {
  /** Hash of the link's secret. */
  id: string
  workspaceId: string
  operator: string
  scopes: string[]
  expiresAt: Date
  /** Token that made the link. If it is revoked, the link is refused. Absent for the invitation of an account. */
  tokenId?: string
  /** Latest end of the session that the link creates. */
  sessionEndsBy?: Date
  /** A link with this field signs in nobody. It sets this mail address of the account `operator`. */
  newMail?: string
  /** A link with this field has no scopes. It signs in the account `operator`. */
  account?: {
    /** The account is created with this role, unless it exists. */
    role?: Role
    mail?: string
    isFirst?: boolean
    /** Operator who invited. Absent for links of the shell and mailed links. */
    invitedBy?: string
    createdAt: Date
  }
}

export const linkLifetimeMs = 600_000
export const invitationLifetimeMs = 7 * 86_400_000
/** Lifetime of a session without an account: a working day. */
export const sessionLifetimeMs = 12 * 3_600_000
/** Lifetime of a session of an account. Such sessions can be listed and ended. */
export const accountSessionLifetimeMs = 30 * 86_400_000

export const newSecret = () => randomBytes(32).toString('base64url')

/** Returns half of the id, which is the hash of the secret. */
export const publicIdOf = ({ id }: { id: string }) => id.slice(0, 22)

/** Returns the id under which a secret is stored: its hash, because the database keeps no secrets. */
export const secretId = (secret: string) => createHash('sha256').update(`console ${secret}`).digest('base64url')
