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
}

/** A link that signs in one operator once. */
export interface SignInLink {
  /** Hash of the link's secret. */
  id: string
  workspaceId: string
  operator: string
  scopes: string[]
  expiresAt: Date
  /** Time at which a session that the link creates ends at the latest. */
  sessionEndsBy?: Date
}

export const linkLifetimeMs = 600_000
/** Maximum lifetime of a console session: a working day. */
export const sessionLifetimeMs = 12 * 3_600_000
