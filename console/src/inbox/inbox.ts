import { computed, effect, type Signal, signal } from '@preact/signals'
import {
  type Conversation,
  type ConversationChanged,
  type GrownMessage,
  type InboxEvent,
  Presence,
  type PresenceChanged,
  type QueueCounts,
} from '#proto/messaging/v1/messaging_pb.js'
import { createPause, onceMore } from '../../../browser/pause.ts'
import type { TimerId } from '../../../browser/platform.ts'
import { createTabStream, type TabStreamDeps } from '../../../browser/tab-stream.ts'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import type { InboxFilter } from '../router.ts'
import { millisecondsOf } from '../time.ts'
import { type Change, movesConversation, patched, summaryOf } from './conversation-record.ts'
import { listRequest } from './inbox-filter.ts'
import { type InboxFrame, type LinkState, type WatchOptions, watchInbox } from './inbox-watch.ts'
import { createSearch, type SearchDeps } from './search.ts'

/** Callbacks for changes of the conversation that is open in the console. */
interface ConversationFollower {
  /** Called if changes may have been missed. */
  onGap(): void
  onChange(conversation: Conversation, events: InboxEvent[]): void
  onGrew(part: GrownMessage): void
  /** Called if the conversation may have a new note, or is listed again after a removal. */
  onNotes(): void
  onRemoved(): void
}

/** A list as the service answered it. */
interface List {
  ids: readonly string[]
  /** Number of pages that the operator has asked for. */
  pages: number
  hasMore: boolean
}

export type Inbox = ReturnType<typeof createInbox>

interface InboxDeps
  extends Pick<WatchOptions, 'random' | 'browserEvents'>,
    Pick<SearchDeps, 'me' | 'filter' | 'setFilter'> {
  api: Pick<Api, 'messaging'>
  /** The queue of an address that names none. */
  defaultQueue: Signal<string | undefined>
  /** True after a visitor has opened the chat, also before this page was loaded. */
  wasVisited: Signal<boolean>
  /** Tabs share connections, so a hidden tab may have to close its stream. */
  platform: TabStreamDeps['platform']
}

const pageSize = 50
/** Minimum time between two requests for a page of a list. */
const restMs = 500
/**
 * A list of another core may lag behind the stream by this time. Changes of this time are applied to
 * each answer, and the list is requested once more afterwards.
 */
const lagMs = 2_500
/** How long a typing indicator is shown without a new event, in milliseconds. */
export const typingLastsMs = 9000

/**
 * The operator's inbox: lists and conversations as the service answered them. A change of the stream
 * patches its conversation, and requests the shown list again if it may move the conversation.
 */
export function createInbox({ api, me, filter, setFilter, defaultQueue, wasVisited, platform, ...deps }: InboxDeps) {
  const { messaging } = api
  const { clock } = platform
  const conversations = signal<ReadonlyMap<string, Conversation>>(new Map())
  const lists = signal<ReadonlyMap<string, List>>(new Map())
  const keyOf = (wanted: InboxFilter) => JSON.stringify(listRequest(wanted, me))
  const shownKey = computed(() => keyOf(filter.value))
  const shownList = computed(() => lists.value.get(shownKey.value))
  const counts = signal<QueueCounts | undefined>(undefined)
  const link = signal<LinkState>({ name: 'connecting' })
  const loading = signal(true)
  const failure = signal<Failure | undefined>(undefined)
  const isListed = signal(false)
  /** Presence of visitors who are not gone, by conversation. */
  const presence = signal<ReadonlyMap<string, Presence>>(new Map())
  /** Conversations whose visitor types, with the time at which the typing started. */
  const typing = signal<ReadonlyMap<string, number>>(new Map())
  const followers = new Map<string, Set<ConversationFollower>>()
  /** The changes of the last `lagMs`. */
  let recent: { change: Change; at: number }[] = []
  /** True after a gap, until the open conversations have been listed for the alerts. */
  let isGap = true
  let closeStream = () => {}
  const tab = createTabStream({ platform, open: openStream, close: () => closeStream() })
  let stopFilter = () => {}
  const pause = createPause(clock)
  let settling: TimerId
  let isStopped = false
  const search = createSearch({ messaging, me, filter, setFilter })

  /** Stores answers of the service, with the changes that they may lack. */
  function keep(answered: readonly Conversation[], requestedAt: number) {
    recent = recent.filter(({ at }) => at >= clock.now() - lagMs)
    const lacking = recent.filter(({ at }) => at >= requestedAt - lagMs)
    const next = new Map(conversations.value)
    for (const each of answered) {
      const changes = lacking.filter(({ change }) => change.conversation.conversationId === each.conversationId)
      next.set(
        each.conversationId,
        changes.reduce((known, { change }) => patched(known, change), each),
      )
    }
    conversations.value = next
  }

  async function load(wanted: InboxFilter, pages: number): Promise<List> {
    const requestedAt = clock.now()
    const found: Conversation[] = []
    let pageToken: string | undefined
    for (let page = 0; page < pages; page += 1) {
      const answer = await messaging.listConversations({ ...listRequest(wanted, me), limit: pageSize, pageToken })
      found.push(...answer.conversations)
      counts.value = answer.counts
      pageToken = answer.nextPageToken
      if (pageToken === undefined) break
    }
    keep(found, requestedAt)
    return { ids: found.map(({ conversationId }) => conversationId), pages, hasMore: pageToken !== undefined }
  }

  /** Chooses the queue that is shown first: the unanswered, or all if nobody waits. Returns the unanswered if they are to be shown. */
  async function chooseQueue() {
    const unanswered = { ...filter.peek(), queue: 'unanswered' }
    const list = await load(unanswered, 1)
    defaultQueue.value = list.ids.length > 0 ? 'unanswered' : 'open'
    return keyOf(unanswered) === shownKey.peek() ? list : undefined
  }

  /** Requests the shown list. Calls while it is under way request it once more afterwards. */
  const refresh = onceMore(async () => {
    if (isStopped) return
    let key = shownKey.peek()
    const pages = shownList.peek()?.pages ?? 1
    loading.value = true
    try {
      const chosen = filter.peek().queue === undefined ? await chooseQueue() : undefined
      key = shownKey.peek()
      const list = chosen ?? (await load(filter.peek(), pages))
      // Changes of conversations outside of the shown list cause alerts, too.
      if (isGap && key !== keyOf({})) await load({}, 1)
      isGap = false
      lists.value = new Map(lists.value).set(key, list)
      failure.value = undefined
      isListed.value = true
    } catch (error) {
      failure.value = describeFailure(error)
    }
    // The filter may have changed. Its own request then follows.
    if (key === shownKey.peek()) loading.value = false
    await pause.wait(restMs * pages)
  })

  /** Requests the shown list without a pause. */
  function refreshNow() {
    pause.end()
    return refresh()
  }

  function dropOthers() {
    const kept = shownList.peek()
    lists.value = kept ? new Map([[shownKey.peek(), kept]]) : new Map()
    return new Set(kept?.ids)
  }

  /** Requests the shown list again, and once more when answers lag no more. */
  function invalidate() {
    dropOthers()
    void refresh()
    settling ??= clock.setTimeout(() => {
      settling = undefined
      void refresh()
    }, lagMs)
  }

  function takeTyping({ conversation: { conversationId }, events }: Change) {
    const next = new Map(typing.value)
    for (const { type, author, message, occurredAt } of events) {
      if (type === 'typing.started' && author?.kind === 'visitor') next.set(conversationId, millisecondsOf(occurredAt))
      else if ((type === 'typing.stopped' ? author : message?.author)?.kind === 'visitor') next.delete(conversationId)
    }
    typing.value = next
  }

  function changed({ conversation, events }: ConversationChanged) {
    if (!conversation) return
    const { conversationId } = conversation
    const change = { conversation, events }
    recent.push({ change, at: clock.now() })
    // A conversation without a message is in no list.
    const known = conversations.value.get(conversationId)
    if (known || conversation.lastSequence > 0)
      conversations.value = new Map(conversations.value).set(conversationId, patched(known, change))
    takeTyping(change)
    if (movesConversation(change)) invalidate()
    tell(conversationId, (follower) => follower.onChange(conversation, events))
  }

  function removed(ids: readonly string[]) {
    recent = recent.filter(({ change }) => !ids.includes(change.conversation.conversationId))
    conversations.value = new Map([...conversations.value].filter(([id]) => !ids.includes(id)))
    search.remove(ids)
    invalidate()
    for (const id of ids) tell(id, (follower) => follower.onRemoved())
  }

  /** Drops what changes may have been missed of. The shown list stays until its new answer. */
  function ready() {
    const ids = dropOthers()
    conversations.value = new Map([...conversations.value].filter(([id]) => ids.has(id)))
    recent = []
    isGap = true
    void refreshNow()
    for (const id of followers.keys()) tell(id, (follower) => follower.onGap())
  }

  function takePresence({ complete, conversations: changed }: PresenceChanged) {
    const next = new Map(complete ? [] : presence.value)
    for (const { conversationId, presence: state } of changed) {
      if (state === Presence.GONE) next.delete(conversationId)
      else next.set(conversationId, state)
    }
    presence.value = next
    if (next.size > 0) wasVisited.value = true
  }

  const tell = (conversationId: string, call: (follower: ConversationFollower) => void) =>
    followers.get(conversationId)?.forEach(call)

  function onFrame({ case: name, value }: InboxFrame) {
    if (name === 'ready') ready()
    else if (name === 'changed') changed(value)
    else if (name === 'removed') removed(value.conversationIds)
    else if (name === 'presence') takePresence(value)
    else if (name === 'grew')
      for (const part of value.messages) tell(part.conversationId, (follower) => follower.onGrew(part))
    else if (name === 'notes') {
      if (!conversations.peek().has(value.conversationId)) invalidate()
      tell(value.conversationId, (follower) => follower.onNotes())
    }
  }

  function onState(state: LinkState) {
    link.value = state
    if (state.name === 'live') tab.onOnline()
    if (state.name !== 'rejected') return
    loading.value = false
    tab.stop()
  }

  function openStream() {
    closeStream = watchInbox({ messaging, onFrame, onState, ...deps })
  }

  return {
    search,
    counts,
    conversations,
    typing,
    link,
    failure,
    /** True while the shown list is requested for the first time. */
    isLoading: computed(() => loading.value && !shownList.value),
    isBusy: loading,
    isListed,
    shown: computed(() => (shownList.value?.ids ?? []).flatMap((id) => conversations.value.get(id) ?? [])),
    unanswered: computed(() => counts.value?.unanswered ?? 0),
    /** Returns the conversation that waits longest, except for the given one. */
    async nextUnanswered(openId: string | undefined): Promise<string | undefined> {
      const { ids } = await load({ queue: 'unanswered' }, 1)
      return ids.find((conversationId) => conversationId !== openId)
    },
    hasMore: computed(() => shownList.value?.hasMore === true),
    async loadMore() {
      const list = shownList.peek()
      if (!list || loading.peek()) return
      lists.value = new Map(lists.value).set(shownKey.peek(), { ...list, pages: list.pages + 1 })
      await refreshNow()
    },
    reload: refreshNow,
    wasVisited,
    /** Returns the presence of the visitor, or `UNSPECIFIED` while the stream is not live. */
    presenceOf: (conversationId: string): Presence =>
      link.value.name === 'live' ? (presence.value.get(conversationId) ?? Presence.GONE) : Presence.UNSPECIFIED,
    /** Takes the conversation that a call has returned. */
    update(conversation: Conversation) {
      const known = conversations.value.get(conversation.conversationId)
      if (known)
        conversations.value = new Map(conversations.value).set(conversation.conversationId, {
          ...conversation,
          ...summaryOf(known),
        })
      invalidate()
    },
    follow(conversationId: string, follower: ConversationFollower) {
      const group = followers.get(conversationId) ?? new Set()
      followers.set(conversationId, group.add(follower))
      return () => {
        group.delete(follower)
        if (group.size === 0) followers.delete(conversationId)
      }
    },
    start() {
      tab.start()
      stopFilter = effect(() => {
        loading.value = true
        if (shownKey.value && link.peek().name === 'live') void refreshNow()
      })
    },
    stop() {
      tab.stop()
      stopFilter()
      search.stop()
      isStopped = true
      pause.end()
      clock.clearTimeout(settling)
    },
  }
}
