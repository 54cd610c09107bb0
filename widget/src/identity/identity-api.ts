import { createPause } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import type { WidgetError } from '../vocabulary/errors.ts'
import type { LeftSession, SessionContent } from '../vocabulary/types.ts'

const attempts = 4
/**
 * While the service answers `OperationInProgress`, retries go on: after 15 s they succeed if its
 * process has died.
 */
const deadProcessMs = 20_000

export type IdentityApi = ReturnType<typeof createIdentityApi>

type Call<Content> = (grant: string, idempotencyKey: string) => Promise<Content>

/** The routes that identify the visitor, log the visitor out or close the session. */
export function createIdentityApi(
  { call, post, renewSession }: Pick<Api, 'call' | 'post' | 'renewSession'>,
  { clock, random, newId }: Pick<Platform, 'clock' | 'random' | 'newId'>,
) {
  const path = '/sessions/identify'
  const field = 'accessGrant'
  return {
    ask,
    repeat,

    identify: (assertion: string, grant: string, idempotencyKey: string) =>
      post<SessionContent>(path, field, { assertion }, idempotencyKey, grant),

    clearIdentity: (grant: string, idempotencyKey: string) =>
      call<SessionContent>({ method: 'DELETE', path, field, grant, idempotencyKey }),

    async closeSession(grant: string, idempotencyKey: string): Promise<undefined> {
      await post('/sessions/close', 'state', { scope: 'continuity' }, idempotencyKey, grant)
    },
  }

  /**
   * Runs one operation with the grant of the given session. Retries it with the same idempotency
   * key. If the grant has expired, renews it first. If the answer has no renewal token, the
   * session continues with the one that it has.
   */
  async function ask<Content>(before: LeftSession, operation: Call<Content>) {
    const key = newId()
    const askedAtMs = clock.now()
    let { accessGrant, renewalToken } = before
    const attempt = () => operation(accessGrant, key)
    async function renewFirst(error: WidgetError): Promise<Content> {
      if (error.code !== 'GrantExpired') throw error
      ;({ accessGrant, renewalToken } = await renewSession(before, key))
      return attempt()
    }
    const answer = await repeat(() => attempt().catch(renewFirst))
    return { content: answer && { renewalToken, ...answer }, askedAtMs }
  }

  function repeat<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
    const waitsUntilMs = clock.now() + deadProcessMs
    return retrying(attempt, {
      pause: createPause(clock),
      random,
      isEnough: ({ code }, count) =>
        count + 1 >= attempts && (code !== 'OperationInProgress' || clock.now() > waitsUntilMs),
    })
  }
}
