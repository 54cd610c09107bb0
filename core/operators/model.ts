import { createHash, randomBytes } from 'node:crypto'

export interface Member {
  id: string
  /** Name that visitors see. */
  name: string
  /** In lower case. */
  mail?: string
  /** Absent for accounts of the OpenID Connect provider, whose claims name the scopes. */
  role?: Role
  state: 'active' | 'removed'
  joinedAt: Date
  notifications?: Notifications
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

/** They are one document, so that one write decides who is the last owner. */
export interface Team {
  workspaceId: string
  /** A write replaces only the version that it has read. */
  version: number
  members: Member[]
}

export type Role = 'owner' | 'operator' | 'viewer'

export interface Passkey {
  /** Of the credential, in base64url. */
  id: string
  workspaceId: string
  operator: string
  name: string
  /** COSE, in base64url. */
  publicKey: string
  counter: number
  /** The passkey signs in only at this origin. */
  origin: string
  createdAt: Date
  usedAt?: Date
}

/** The secret is in the cookie of the operator's browser. */
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
  /** Push subscription of the browser. */
  push?: { sealed: string }
  lookedAt?: Date
  /** The conversation that the console showed when the operator last looked. */
  looksAt?: string
  provider?: ProviderCheck
}

export type SignedInOperator = Pick<ConsoleSession, 'displayName' | 'operator'>

export interface ProviderCheck {
  /** The refresh token is sent to no other provider. */
  issuer: string
  /** Refresh token. */
  sealed: string
  recheckAt: Date
}

/** A sign-in that has begun at a provider or with a passkey, or a new passkey. */
export interface SignInAttempt {
  /** Hash of the parameter `state`, or of the challenge. */
  id: string
  /** Hash of the secret of the browser that began the sign-in, or id of the session of a new passkey. */
  browserId: string
  replacedId?: string
  /** Absent for passkeys. */
  issuer?: string
  /** Request with nonce and code verifier. Absent for passkeys. */
  sealed?: string
  /** Only for a new passkey. */
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
  /** Token that made the link. If it is revoked, the link is refused. */
  tokenId?: string
  /** Latest end of its session. */
  sessionEndsBy?: Date
  /** Only in a link that signs in nobody, and sets this address of `operator`. */
  newMail?: string
  /** Only in a link without scopes that signs in the account `operator`. */
  account?: {
    /** The account is created with this role, unless it exists. */
    role?: Role
    mail?: string
    isFirst?: boolean
    /** Absent for links of the shell and mailed links. */
    invitedBy?: string
    createdAt: Date
  }
}

export const linkLifetimeMs = 600_000
export const invitationLifetimeMs = 7 * 86_400_000
/** Without an account: a working day. */
export const sessionLifetimeMs = 12 * 3_600_000
/** These sessions can be listed and ended. */
export const accountSessionLifetimeMs = 30 * 86_400_000

export const newSecret = () => randomBytes(32).toString('base64url')

/** Half of the id, which is the hash of the secret. */
export const publicIdOf = ({ id }: { id: string }) => id.slice(0, 22)

/** The database has no secrets, only their hashes. */
export const secretId = (secret: string) => createHash('sha256').update(`console ${secret}`).digest('base64url')
