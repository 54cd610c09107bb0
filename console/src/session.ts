import { signal } from '@preact/signals'
import { claimsOf } from '../../widget/src/claims.ts'

/** Claims of the operator's session token, used only for display. The server verifies the token. */
export interface WorkspaceSession {
  token: string
  workspaceId: string
  /** The operator's name from the token's `sub` claim. */
  operator: string
  /** The agent's name that visitors see. */
  displayName: string
  scopes: string[]
  /** Expiry in milliseconds since the epoch. Undefined if the token does not expire. */
  expiresAt?: number
}

export type SessionEnd = 'signed_out' | 'expired' | 'rejected'

export type SessionHolder = ReturnType<typeof createSessionHolder>

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

const tokenKey = 'service.console.session'
const nameKey = 'service.console.name'
/** Maximum delay that `setTimeout` supports. */
const maxTimerMs = 2 ** 31 - 1

/**
 * Reads the claims of a workspace session (a JWT). Returns a string that describes the problem if
 * it is invalid.
 */
export function readWorkspaceSession(token: string, now: number): Omit<WorkspaceSession, 'displayName'> | string {
  const claims = token.split('.').length === 3 ? claimsOf(token) : undefined
  if (!claims) return 'This is not a workspace session token.'
  const { wid, sub, scope, exp } = claims
  if (typeof wid !== 'string' || typeof sub !== 'string') return 'This token has no workspace or no operator.'
  const expiresAt = typeof exp === 'number' ? exp * 1000 : undefined
  if (expiresAt !== undefined && expiresAt <= now) return 'This session has expired. Request a new one.'
  return {
    token,
    workspaceId: wid,
    operator: sub,
    scopes: typeof scope === 'string' ? scope.split(' ').filter(Boolean) : [],
    expiresAt,
  }
}

/** Stores the session in this tab only, and ends it when it expires. */
export function createSessionHolder({ storage, now }: { storage: Storage; now: () => number }) {
  const current = signal<WorkspaceSession | undefined>(undefined)
  /** Reason why the last session ended. */
  const ended = signal<SessionEnd | undefined>(undefined)
  let timer: ReturnType<typeof setTimeout> | undefined

  function end(reason: SessionEnd) {
    clearTimeout(timer)
    storage.removeItem(tokenKey)
    if (!current.value) return
    ended.value = reason
    current.value = undefined
  }

  function watchExpiry() {
    clearTimeout(timer)
    const { expiresAt } = current.value ?? {}
    if (expiresAt === undefined) return
    const left = expiresAt - now()
    if (left <= 0) end('expired')
    else timer = setTimeout(watchExpiry, Math.min(left, maxTimerMs))
  }

  /** Returns the problem with the token, or undefined. */
  function signIn(input: string, displayName: string): string | undefined {
    const read = readWorkspaceSession(input.trim(), now())
    if (typeof read === 'string') return read
    storage.setItem(tokenKey, read.token)
    storage.setItem(nameKey, displayName)
    ended.value = undefined
    current.value = { ...read, displayName: displayName.trim() || read.operator }
    watchExpiry()
    return undefined
  }

  const stored = storage.getItem(tokenKey)
  if (stored !== null && signIn(stored, storage.getItem(nameKey) ?? '') !== undefined) {
    storage.removeItem(tokenKey)
    ended.value = 'expired'
  }
  return { current, ended, signIn, end }
}
