import type { Api } from './api.ts'
import type { SessionContent } from './types.ts'

/** The routes that change who the visitor is. Each call makes one attempt and rejects with a `WidgetError`. */
export function createIdentityApi({ call }: Pick<Api, 'call'>) {
  return {
    identify: (assertion: string, grant: string, idempotencyKey: string) =>
      call<SessionContent>({
        method: 'POST',
        path: '/sessions/identify',
        field: 'accessGrant',
        body: { assertion },
        grant,
        idempotencyKey,
      }),

    clearIdentity: (grant: string, idempotencyKey: string) =>
      call<SessionContent>({
        method: 'DELETE',
        path: '/sessions/identify',
        field: 'accessGrant',
        grant,
        idempotencyKey,
      }),

    closeSession: (grant: string, idempotencyKey: string) =>
      call<{ sessionId: string; state: 'active' | 'closed' }>({
        method: 'POST',
        path: '/sessions/close',
        field: 'state',
        body: { scope: 'continuity' },
        grant,
        idempotencyKey,
      }),
  }
}
