import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Capabilities } from '../workspaces/model.ts'
import type { SiteDirectory } from '../workspaces/workspaces.ts'

/**
 * Throws `RouteNotAdvertised` if the conversation has installations, and none has the capability. A
 * visitor may use several installations in the same conversation.
 */
export type RequireSiteCapability = (conversationId: string, capability: keyof Capabilities) => Promise<void>

export function createSiteCapabilities(dependencies: {
  sessions: Pick<SessionStore, 'sitesOf'>
  installations: Pick<SiteDirectory['installations'], 'get'>
}): RequireSiteCapability {
  const { sessions, installations } = dependencies

  return async (conversationId, capability) => {
    const keys = await sessions.sitesOf(conversationId)
    const found = await Promise.all(keys.map((key) => installations.get(key)))
    if (found.length > 0 && !found.some((installation) => installation?.capabilities[capability]))
      throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
  }
}
