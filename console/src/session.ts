import { type ReadonlySignal, signal } from '@preact/signals'

/** Who works here, as the workspace session says it. Only the server judges it; this is for the eye. */
export interface WorkspaceSession {
  token: string
  workspaceId: string
  /** The operator, as the session's issuer names them. */
  operator: string
  /** What visitors see as the agent's name. */
  displayName: string
  scopes: string[]
  /** Milliseconds of the epoch; left out where the session has no end of its own. */
  expiresAt?: number
}

export type SessionEnd = 'signed_out' | 'expired' | 'refused'

export interface SessionHolder {
  current: ReadonlySignal<WorkspaceSession | undefined>
  /** Why there is none, after there was one. */
  ended: ReadonlySignal<SessionEnd | undefined>
  /** Answers what is wrong with the token, or undefined. */
  signIn(token: string, displayName: string): string | undefined
  end(reason: SessionEnd): void
}

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

const tokenKey = 'service.console.session'
const nameKey = 'service.console.name'
/** `setTimeout` counts no further. */
const longestTimer = 2 ** 31 - 1

/** What a workspace session (a JWT) says of itself, or what is wrong with it. */
export function readWorkspaceSession(token: string, now: number): Omit<WorkspaceSession, 'displayName'> | string {
  const parts = token.split('.')
  const claims = parts.length === 3 ? decodeClaims(parts[1]!) : undefined
  if (!claims) return 'This is not a workspace session: it should be three parts with dots between them.'
  const { wid, sub, scope, exp } = claims
  if (typeof wid !== 'string' || typeof sub !== 'string')
    return 'This token names no workspace and operator. A workspace session has both.'
  const expiresAt = typeof exp === 'number' ? exp * 1000 : undefined
  if (expiresAt !== undefined && expiresAt <= now) return 'This session has expired. Ask for a new one.'
  return {
    token,
    workspaceId: wid,
    operator: sub,
    scopes: typeof scope === 'string' ? scope.split(' ').filter(Boolean) : [],
    ...(expiresAt === undefined ? {} : { expiresAt }),
  }
}

/** Keeps the session for this tab alone, and ends it when its time is over. */
export function createSessionHolder({ storage, now }: { storage: Storage; now: () => number }): SessionHolder {
  const current = signal<WorkspaceSession | undefined>(undefined)
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
    else timer = setTimeout(watchExpiry, Math.min(left, longestTimer))
  }

  function signIn(given: string, displayName: string): string | undefined {
    const read = readWorkspaceSession(given.trim(), now())
    if (typeof read === 'string') return read
    storage.setItem(tokenKey, read.token)
    storage.setItem(nameKey, displayName)
    ended.value = undefined
    current.value = { ...read, displayName: displayName.trim() || read.operator }
    watchExpiry()
    return undefined
  }

  const kept = storage.getItem(tokenKey)
  if (kept !== null && signIn(kept, storage.getItem(nameKey) ?? '') !== undefined) {
    storage.removeItem(tokenKey)
    ended.value = 'expired'
  }
  return { current, ended, signIn, end }
}

function decodeClaims(part: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
