import type { onRequestAsyncHookHandler } from 'fastify'
import type { Authorization, Credentials, GrantCache } from '../core/grant-cache.ts'
import { GatewayError } from '../errors.ts'
import type { RefusalLimit } from './refusals.ts'

/** The authorised visitor of a scoped request. */
export interface Visitor {
  credentials: Credentials
  sessionId: string
  /** Returns a recent authorisation, else asks a core. Rejects with its refusal. */
  confirm(): Promise<Authorization>
  /** Removes the grant from the cache. */
  forget(): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs an access grant. */
    scoped?: boolean
    /**
     * The route accepts a grant of a closed session, so that retries of a closing call get an
     * answer.
     */
    closedToo?: boolean
  }
  interface FastifyRequest {
    visitor: Visitor | null
  }
}

const BEARER = /^bearer +(\S.*)$/i

/** Scoped routes need a grant that is valid for this origin and belongs to a live session. */
export function createGrantCheck(grants: GrantCache, refusals: RefusalLimit): onRequestAsyncHookHandler {
  return async (request) => {
    const { scoped, closedToo = false } = request.routeOptions.config
    if (!scoped) return
    const accessGrant = BEARER.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const credentials = { accessGrant, origin: request.headers.origin! }
    const { sessionId } = await refusals.check(request, 'grant', `${credentials.origin} ${accessGrant}`, async () => {
      if (accessGrant === '') throw new GatewayError('GrantMissing')
      return (closedToo ? grants.authorizeClosedToo : grants.authorize)(credentials, request.id)
    })
    request.visitor = {
      credentials,
      sessionId,
      confirm: () => grants.confirm(credentials, request.id),
      forget: () => grants.forget(credentials),
    }
  }
}
