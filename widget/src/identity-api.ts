import type { Api } from './api.ts'
import type { WidgetError } from './errors.ts'
import type { SessionContent } from './types.ts'

/**
 * The routes that identify the visitor, log the visitor out or close the session. Each call makes
 * one attempt and rejects with a `WidgetError`.
 */
export function createIdentityApi({ call, post }: Pick<Api, 'call' | 'post'>) {
  const path = '/sessions/identify'
  const field = 'accessGrant'
  return {
    identify: (assertion: string, grant: string, idempotencyKey: string) =>
      post<SessionContent>(path, field, { assertion }, idempotencyKey, grant),

    clearIdentity: (grant: string, idempotencyKey: string) =>
      call<SessionContent>({ method: 'DELETE', path, field, grant, idempotencyKey }),

    closeSession: (grant: string, idempotencyKey: string) =>
      post<{ state: 'active' | 'closed' }>('/sessions/close', 'state', { scope: 'continuity' }, idempotencyKey, grant),
  }
}

/**
 * Returns a function that makes a call with the grant of a session. If the grant has expired, the
 * function renews it and repeats the call. The new grant is not stored. If the session continues,
 * its next renewal sends the old renewal token, which the service accepts for a limited time.
 */
export function renewingCall<Content>(
  api: Pick<Api, 'renewSession'>,
  before: SessionContent,
  key: string,
  call: (grant: string, key: string) => Promise<Content>,
): () => Promise<Content> {
  let current = before
  const attempt = () => call(current.accessGrant, key)
  async function renewFirst(error: WidgetError): Promise<Content> {
    if (error.code !== 'GrantExpired') throw error
    current = await api.renewSession(before, key)
    return attempt()
  }
  return () => attempt().catch(renewFirst)
}
