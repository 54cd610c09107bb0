import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { inWorkspace, type Scope } from '../errors.ts'
import { contactsOf } from '../leads/leads.ts'
import type { Conversation } from '../log/conversation-model.ts'
import { findConversations } from '../log/conversation-store.ts'
import { eventsOf } from '../log/event-store.ts'
import { type EventType, endsSession, eventTypes, type LogEvent } from '../log-event.ts'
import { field, integer, validate } from '../rules.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { liveCacheOf } from '../wakeups/live-cache.ts'
import type { Capabilities, Installation } from '../workspaces/model.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import { type ConversationSummary, conversationFactsMs } from './model.ts'

const readsOf = perCore((core) => {
  const loadMany = async (ids: string[]) =>
    byKey(await findConversations(core, ids), ({ conversationId }) => conversationId)
  return {
    load: createBatchLoader(loadMany),
    /** Caches the immutable fields of conversations. */
    facts: liveCacheOf<Pick<Conversation, 'workspaceId' | 'epoch'>>(core, {
      maxEntries: 100_000,
      maxAgeMs: conversationFactsMs,
      loadMany: async (ids) =>
        new Map([...(await loadMany(ids))].map(([id, { workspaceId, epoch }]) => [id, { workspaceId, epoch }])),
    }),
  }
})

/** Finds a conversation of the caller. Errors: `NotFound`, also for a conversation of another workspace. */
export async function findConversation(core: Core, conversationId: string, scope: Scope): Promise<Conversation> {
  return inWorkspace(await readsOf(core).load(conversationId), scope)
}

/** Throws `NotFound` if the workspace does not have the conversation. Uses data that may be a second old. */
export async function requireConversation(core: Core, conversationId: string, scope: Scope) {
  inWorkspace(await readsOf(core).facts.get(conversationId), scope)
}

/** Returns the epoch of a conversation's log; undefined if there is no such conversation. */
export async function epochOf(core: Core, conversationId: string): Promise<string | undefined> {
  return (await readsOf(core).facts.get(conversationId))?.epoch
}

/** Returns one summary per conversation, in the same order, with one query for each kind of content. */
export async function summarizeConversations(
  core: Core,
  conversations: Conversation[],
  { contacts: withContacts = false } = {},
): Promise<ConversationSummary[]> {
  const places = conversations.flatMap(({ conversationId, lastSequence }) =>
    lastSequence === undefined ? [] : [{ conversationId, sequence: lastSequence }],
  )
  const sessionIds = conversations.flatMap(({ lastSessionId }) => lastSessionId ?? [])
  const ids = conversations.map(({ conversationId }) => conversationId)
  const [found, latest, contacts] = await Promise.all([
    sessionStoreOf(core).find(sessionIds),
    eventsOf(core).at(places),
    withContacts ? contactsOf(core, ids) : undefined,
  ])
  const sessionsById = byKey(found, ({ sessionId }) => sessionId)
  const latestById = byKey(latest, ({ conversationId }) => conversationId)
  return conversations.map(({ conversationId, lastSessionId = '' }) => {
    const session = sessionsById.get(lastSessionId)
    const { externalSubject, displayName } = session?.identity ?? {}
    const identityState = session?.identity ? ('verified' as const) : ('anonymous' as const)
    const lastMessage = latestById.get(conversationId)
    return {
      visitor: session && { identityState, externalSubject, displayName },
      lastMessage: lastMessage?.message && lastMessage,
      contact: contacts?.get(conversationId),
    }
  })
}

/**
 * Returns the installations of a conversation, undefined for deleted ones. A visitor may use several
 * installations in the same conversation.
 */
export async function sitesOf(core: Core, conversationId: string): Promise<(Installation | undefined)[]> {
  const { installations } = siteDirectoryOf(core)
  return Promise.all((await sessionStoreOf(core).sitesOf(conversationId)).map((key) => installations.get(key)))
}

/** Whether an installation of the conversation has the capability, or the conversation has no installation. */
export async function hasSiteCapability(
  core: Core,
  conversationId: string,
  capability: keyof Capabilities,
): Promise<boolean> {
  const found = await sitesOf(core, conversationId)
  return found.length === 0 || found.some((installation) => installation?.capabilities[capability])
}

/** Events of sessions and commands are data of other methods, so they need the scopes of those methods. */
export function isReadable(type: EventType, scopes: ReadonlySet<string>): boolean {
  const [kind] = type.split('.')
  if (kind === 'navigation' || kind === 'screenshot') return scopes.has('commands:read')
  return (type !== 'session.identified' && !endsSession(type)) || scopes.has('sessions:read')
}

/** Types of events that operators see between the messages. */
const listed = eventTypes.filter((type) => !type.startsWith('message.') && !type.startsWith('typing.'))
const maxPage = 100
const defaultPage = 50

/**
 * Returns events in a range of a conversation, oldest first: those that operators see between the messages
 * and that the caller may read. Errors: NotFound, ValidationFailed.
 */
export async function listConversationEvents(
  core: Core,
  conversationId: string,
  range: { afterSequence: number; beforeSequence?: number; limit?: number },
  { workspaceId, scopes }: { workspaceId?: string; scopes: ReadonlySet<string> },
): Promise<{ events: LogEvent[]; hasMore: boolean }> {
  const { afterSequence: after, beforeSequence: before, limit = defaultPage } = range
  await findConversation(core, conversationId, workspaceId)
  validate(field('/limit', limit, integer(1, maxPage)))
  const types = listed.filter((type) => isReadable(type, scopes))
  const found = await eventsOf(core).ofTypes(types, { conversationId, after, before }, limit + 1)
  return { events: found.slice(0, limit), hasMore: found.length > limit }
}
