import type { onRequestAsyncHookHandler } from 'fastify'
import type { Authorization, Credentials, Grants } from '../core/grants.ts'
import { GatewayError } from '../errors.ts'
import type { RefusalLimit } from './refusals.ts'

/** The visitor of a scoped request, as a core has authorised it. */
export interface Visitor {
  credentials: Credentials
  sessionId: string
  /** Asks a core again unless it was asked just now; rejects with its refusal. */
  confirm(): Promise<Authorization>
  /** The core has refused the grant: it is no longer known as good. */
  forget(): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs an access grant. */
    scoped?: boolean
    /** It may close its session, and a repeat is still answered: a grant of a closed session passes on to the core. */
    closedToo?: boolean
  }
  interface FastifyRequest {
    visitor: Visitor | null
  }
}

const BEARER = /^bearer +(\S.*)$/i

/** Scoped routes: a grant is there, it is good for this origin, and its session is live, as a core says. */
export function createGrantCheck(grants: Grants, refusals: RefusalLimit): onRequestAsyncHookHandler {
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
