import { type CryptoKey, SignJWT } from 'jose'

/** HS256 key of the workspace sessions in tests, as UTF-8 text. */
export const workspaceSessionSecret = 'a-workspace-session-secret-of-the-tests'

export interface WorkspaceSessionChange {
  /** Claims that replace or extend the valid ones. A claim with the value undefined is omitted. */
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  key?: Uint8Array | CryptoKey
  /** Time at which the session is signed, in milliseconds since 1970. */
  now?: number
}

/** Signs a workspace session as its issuer does, with the changes that a test needs. */
export function signWorkspaceSession({
  claims = {},
  header = {},
  key = new TextEncoder().encode(workspaceSessionSecret),
  now = Date.now(),
}: WorkspaceSessionChange = {}): Promise<string> {
  const at = Math.floor(now / 1000)
  const payload = {
    aud: 'service.workspace',
    sub: 'operator_1',
    wid: 'ws_1',
    scope: 'leads:deliver',
    iat: at,
    exp: at + 600,
    ...claims,
  }
  return new SignJWT(payload).setProtectedHeader({ alg: 'HS256', ...header }).sign(key)
}
