import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { inWorkspace } from '../errors.ts'
import { contactsOf } from '../leads/conversation-contacts.ts'
import { eventsOf } from '../log/event-store.ts'
import type { Session } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import type { Capabilities, Installation } from '../workspaces/model.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import { findConversations } from './conversation-store.ts'
import { type Conversation, type ConversationSummary, conversationFactsMs } from './model.ts'

const readsOf = perCore((core) => {
  const loadMany = async (ids: string[]) =>
    byKey(await findConversations(core, ids), ({ conversationId }) => conversationId)
  return {
    load: createBatchLoader(loadMany),
    /** Caches the immutable fields of conversations. */
    facts: createLiveCache<Pick<Conversation, 'workspaceId' | 'epoch'>>({
      bus: core.bus,
      isCurrent: () => wakeupsOf(core).isCurrent(),
      maxEntries: 100_000,
      maxAgeMs: conversationFactsMs,
      loadMany: async (ids) =>
        new Map([...(await loadMany(ids))].map(([id, { workspaceId, epoch }]) => [id, { workspaceId, epoch }])),
    }),
  }
})

/**
 * Returns a conversation of the caller's workspace. Without `workspaceId` the caller may access
 * every workspace. Errors: `NotFound` for an unknown conversation or one of another workspace.
 */
export async function findConversation(
  core: Core,
  conversationId: string,
  workspaceId: string | undefined,
): Promise<Conversation> {
  return inWorkspace(await readsOf(core).load(conversationId), workspaceId)
}

/**
 * Throws `NotFound` if the conversation does not exist in the workspace. Uses cached data that is
 * at most a second old.
 */
export async function requireConversation(core: Core, conversationId: string, workspaceId: string | undefined) {
  inWorkspace(await readsOf(core).facts.get(conversationId), workspaceId)
}

/** Returns the epoch of a conversation's log; undefined if there is no such conversation. */
export async function epochOf(core: Core, conversationId: string): Promise<string | undefined> {
  return (await readsOf(core).facts.get(conversationId))?.epoch
}

/**
 * Returns one summary per conversation, in the same order. Contacts are included on request. Loads
 * visitors, latest messages and contacts with one query each.
 */
export async function summarizeConversations(
  core: Core,
  conversations: Conversation[],
  { contacts: withContacts = false } = {},
): Promise<ConversationSummary[]> {
  const events = eventsOf(core)
  const places = conversations.flatMap(({ conversationId, lastSequence }) =>
    lastSequence === undefined ? [] : [{ conversationId, sequence: lastSequence }],
  )
  const sessionIds = conversations.flatMap(({ lastSessionId }) => lastSessionId ?? [])
  const ids = conversations.map(({ conversationId }) => conversationId)
  const [found, latest, contacts] = await Promise.all([
    sessionStoreOf(core).find(sessionIds),
    events.at(places),
    withContacts ? contactsOf(core, ids) : undefined,
  ])
  const sessionsById = byKey(found, ({ sessionId }) => sessionId)
  const latestById = byKey(latest, ({ conversationId }) => conversationId)
  return conversations.map(({ conversationId, lastSessionId }) => {
    const session = lastSessionId === undefined ? undefined : sessionsById.get(lastSessionId)
    const lastMessage = latestById.get(conversationId)
    return {
      visitor: session && toVisitor(session),
      lastMessage: lastMessage?.message && lastMessage,
      contact: contacts?.get(conversationId),
    }
  })
}

function toVisitor({ identity }: Pick<Session, 'identity'>): ConversationSummary['visitor'] {
  if (!identity) return { identityState: 'anonymous' }
  const { externalSubject, displayName } = identity
  return { identityState: 'verified', externalSubject, displayName }
}

/**
 * Returns the installations of a conversation, undefined for deleted ones. A visitor may use several
 * installations in the same conversation.
 */
export async function sitesOf(core: Core, conversationId: string): Promise<(Installation | undefined)[]> {
  const { installations } = siteDirectoryOf(core)
  return Promise.all((await sessionStoreOf(core).sitesOf(conversationId)).map((key) => installations.get(key)))
}

/**
 * Returns whether an installation of the conversation has the capability. Also returns true if the
 * conversation has no installation.
 */
export async function hasSiteCapability(
  core: Core,
  conversationId: string,
  capability: keyof Capabilities,
): Promise<boolean> {
  const found = await sitesOf(core, conversationId)
  return found.length === 0 || found.some((installation) => installation?.capabilities[capability])
}
