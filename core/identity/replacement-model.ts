import { type Identity, newSession, type PageContext, type Session, type SessionLifetimes } from '../sessions/model.ts'

/**
 * Returns the session that replaces another one. If it belongs to another person, it keeps only the
 * browser and the language of the old session.
 */
export function replacementOf(
  old: Session,
  planned: {
    sessionId: string
    conversationId: string
    identity: Identity | undefined
    pageContext: PageContext | undefined
  },
  now: number,
  settings: SessionLifetimes,
): Session {
  const { workspaceId, connectionId, connectionVersion, publicSiteKey, origin, visitorId, clientInstanceId } = old
  const { locale, network, pageContextAt, panelClosedAt } = old
  const { sessionId, conversationId, identity, pageContext } = planned
  // An anonymous session is always replaced by a verified one, which belongs to the same person.
  const isJoining = old.identity === undefined
  return newSession(
    {
      sessionId,
      workspaceId,
      connectionId,
      connectionVersion,
      publicSiteKey,
      origin,
      conversationId,
      visitorId,
      clientInstanceId,
      network,
      locale,
      identity,
      provisionalFor: identity && old.sessionId,
      ...(isJoining && {
        operationSessionId: old.sessionId,
        ...(pageContext && pageContextAt && { pageContext, pageContextAt }),
        ...(panelClosedAt && { panelClosedAt }),
      }),
    },
    now,
    settings,
  )
}
