import type { SessionStore } from '../sessions/session-store.ts'
import type { Capabilities } from '../workspaces/model.ts'
import type { SiteDirectory } from '../workspaces/workspaces.ts'

/**
 * Returns whether an installation of the conversation has the capability. Also returns true if the
 * conversation has no installation. A visitor may use several installations in the same
 * conversation.
 */
export type HasSiteCapability = (conversationId: string, capability: keyof Capabilities) => Promise<boolean>

export function createSiteCapabilities(dependencies: {
  sessions: Pick<SessionStore, 'sitesOf'>
  installations: Pick<SiteDirectory['installations'], 'get'>
}): HasSiteCapability {
  const { sessions, installations } = dependencies

  return async (conversationId, capability) => {
    const keys = await sessions.sitesOf(conversationId)
    const found = await Promise.all(keys.map((key) => installations.get(key)))
    return found.length === 0 || found.some((installation) => installation?.capabilities[capability])
  }
}
