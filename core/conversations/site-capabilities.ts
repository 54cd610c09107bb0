import type { SessionStore } from '../sessions/session-store.ts'
import type { Capabilities, Installation } from '../workspaces/model.ts'
import type { SiteDirectory } from '../workspaces/workspaces.ts'

/**
 * Returns the installations of a conversation, undefined for deleted ones. A visitor may use several
 * installations in the same conversation.
 */
export type SitesOf = (conversationId: string) => Promise<(Installation | undefined)[]>

export function createSitesOf(dependencies: {
  sessions: Pick<SessionStore, 'sitesOf'>
  installations: Pick<SiteDirectory['installations'], 'get'>
}): SitesOf {
  const { sessions, installations } = dependencies

  return async (conversationId) =>
    Promise.all((await sessions.sitesOf(conversationId)).map((key) => installations.get(key)))
}

/**
 * Returns whether an installation of the conversation has the capability. Also returns true if the
 * conversation has no installation.
 */
export type HasSiteCapability = (conversationId: string, capability: keyof Capabilities) => Promise<boolean>

export function createSiteCapabilities(sitesOf: SitesOf): HasSiteCapability {
  return async (conversationId, capability) => {
    const found = await sitesOf(conversationId)
    return found.length === 0 || found.some((installation) => installation?.capabilities[capability])
  }
}
