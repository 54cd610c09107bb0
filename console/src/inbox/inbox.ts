import { computed, signal } from '@preact/signals'
import {
  type Conversation,
  type ConversationChanged,
  ConversationStatus,
  type InboxEvent,
  Presence,
  type QueueCounts,
} from '#proto/messaging/v1/messaging_pb.js'
import { createTabStream, type TabStreamDeps } from '../../../browser/tab-stream.ts'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { type Entries, mergeChange, mergeList, type Queue, selectEntries, summaryOf } from './inbox-merge.ts'
import { type LinkState, type WatchOptions, watchInbox } from './inbox-watch.ts'
import { createSearch } from './search.ts'

/** Callbacks for changes of the conversation that is open in the console. */
interface ConversationFollower {
  /** Called if changes may have been missed. */
  onGap(): void
  onChange(conversation: Conversation, events: InboxEvent[]): void
  /** Called if the conversation may have a new note. */
  onNotes(): void
}

export type Inbox = ReturnType<typeof createInbox>

interface InboxDeps extends Pick<WatchOptions, 'now' | 'random' | 'browserEvents'> {
  api: Pick<Api, 'messaging'>
  /** Returns the operator's name, which identifies their assignments. */
  me: () => string
  /**
   * Coordinates the tabs of the browser. Tabs share connections, so a hidden tab may have to close
   * its stream.
   */
  platform: TabStreamDeps['platform']
}

const pageSize = 50
/** Time between a change and the next count of the queues. */
const countPauseMs = 500

const requestOf = (queue: Queue, me: string, tag = '') => ({
  tag: tag || undefined,
  status: queue === 'closed' ? ConversationStatus.CLOSED : ConversationStatus.OPEN,
  unanswered: queue === 'unanswered',
  assignee:
    queue === 'mine'
      ? { case: 'agentName' as const, value: me }
      : queue === 'unassigned'
        ? { case: 'unassigned' as const, value: true }
        : { case: undefined },
})

/**
 * The operator's inbox. Loads the list when the stream is live, and merges changes from the stream.
 */
export function createInbox({ api: { messaging }, me, platform, now, random, browserEvents }: InboxDeps) {
  const queue = signal<Queue>('open')
  /** The list has only conversations with this tag. If it is empty, the list has all conversations. */
  const tag = signal('')
  /** Numbers of conversations in the queues, counted by the service. */
  const counts = signal<QueueCounts | undefined>(undefined)
  const entries = signal<Entries>(new Map())
  const link = signal<LinkState>({ name: 'connecting' })
  const loading = signal(true)
  const failure = signal<Failure | undefined>(undefined)
  const isListed = signal(false)
  /** Token of the next page for each list. Null after the last page. */
  const next = signal<Partial<Record<string, string | null>>>({})
  const listKey = () => `${queue.value} ${tag.value}`
  /** Presence of visitors who are not gone, by conversation. */
  const presence = signal<ReadonlyMap<string, Presence>>(new Map())
  const followers = new Map<string, Set<ConversationFollower>>()
  let revision = 0
  let closeStream = () => {}
  const tab = createTabStream({ platform, open: openStream, close: () => closeStream() })
  let stopQueue = () => {}
  let counting: ReturnType<typeof setTimeout> | undefined

  async function list(pageToken?: string) {
    const listed = listKey()
    const listRevision = revision
    loading.value = true
    try {
      const page = await messaging.listConversations({
        ...requestOf(queue.value, me(), tag.value),
        limit: pageSize,
        pageToken,
        countFor: me(),
      })
      counts.value = page.counts
      entries.value = mergeList(entries.value, page.conversations, listRevision)
      next.value = { ...next.value, [listed]: page.nextPageToken ?? null }
      failure.value = undefined
      isListed.value = true
    } catch (error) {
      failure.value = describeFailure(error)
    } finally {
      loading.value = false
    }
  }

  /** A change from the stream does not contain the visitor's name, so load the conversation. */
  async function loadVisitor(conversationId: string) {
    const listRevision = revision
    const found = await messaging.getConversation({ conversationId }).catch(() => undefined)
    if (found?.conversation) entries.value = mergeList(entries.value, [found.conversation], listRevision)
  }

  const longestWaiting = async (limit: number) => {
    const page = await messaging.listConversations({ ...requestOf('unanswered', me()), limit, countFor: me() })
    counts.value = page.counts
    return page.conversations
  }

  /** Counts again, once for all changes of a moment. */
  function countSoon() {
    counting ??= setTimeout(() => {
      counting = undefined
      // The next change or list counts again.
      longestWaiting(1).catch(() => {})
    }, countPauseMs)
  }

  function changed({ conversation, events }: ConversationChanged) {
    if (!conversation) return
    if (events.some(({ message, type }) => message || type.startsWith('agent.') || type.startsWith('conversation.')))
      countSoon()
    revision += 1
    const { conversationId, sessionId } = conversation
    const known = entries.value.get(conversationId)
    entries.value = mergeChange(entries.value, { conversation, events }, revision)
    const renamed =
      events.some(({ type }) => type === 'session.identified') || known?.conversation.sessionId !== sessionId
    if (entries.value.has(conversationId) && (!known?.conversation.visitor || renamed)) void loadVisitor(conversationId)
    for (const follower of followers.get(conversationId) ?? []) follower.onChange(conversation, events)
  }

  function ready() {
    void list()
    for (const group of followers.values()) for (const follower of group) follower.onGap()
  }

  function openStream() {
    closeStream = watchInbox({
      messaging,
      onReady: ready,
      onChanged: changed,
      onNotes(conversationId) {
        for (const follower of followers.get(conversationId) ?? []) follower.onNotes()
      },
      onPresence({ complete, conversations }) {
        const next = new Map(complete ? [] : presence.value)
        for (const { conversationId, presence: state } of conversations) {
          if (state === Presence.GONE) next.delete(conversationId)
          else next.set(conversationId, state)
        }
        presence.value = next
      },
      onState(state) {
        link.value = state
        if (state.name === 'live') tab.onOnline()
        if (state.name !== 'rejected') return
        loading.value = false
        tab.stop()
      },
      now,
      random,
      browserEvents,
    })
  }

  return {
    search: createSearch({ messaging, me }),
    queue,
    tag,
    counts,
    entries,
    link,
    loading,
    failure,
    /** True after the first list of conversations has loaded. */
    isListed,
    shown: computed(() => selectEntries(entries.value, queue.value, me(), tag.value)),
    unanswered: computed(() => counts.value?.unanswered ?? 0),
    /** Returns the conversation that waits longest, except for the given one. */
    async nextUnanswered(openId: string | undefined): Promise<string | undefined> {
      const found = await longestWaiting(2)
      entries.value = mergeList(entries.value, found, revision)
      return found.find(({ conversationId }) => conversationId !== openId)?.conversationId
    },
    /** True if more conversations can be loaded. */
    hasMore: computed(() => typeof next.value[listKey()] === 'string'),
    async loadMore() {
      const token = next.value[listKey()]
      if (typeof token === 'string' && !loading.value) await list(token)
    },
    reload: () => list(),
    /** Returns the presence of the visitor, or `UNSPECIFIED` while the stream is not live. */
    presenceOf: (conversationId: string): Presence =>
      link.value.name === 'live' ? (presence.value.get(conversationId) ?? Presence.GONE) : Presence.UNSPECIFIED,
    /** Merges the conversation that a call has returned. */
    update(conversation: Conversation) {
      revision += 1
      const { conversationId } = conversation
      const known = entries.value.get(conversationId)
      if (!known) return
      const merged = { ...conversation, ...summaryOf(known.conversation) }
      entries.value = new Map(entries.value).set(conversationId, { ...known, revision, conversation: merged })
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
      // A list is loaded when it is first selected.
      stopQueue = computed(listKey).subscribe((selected) => {
        if (link.peek().name === 'live' && next.peek()[selected] === undefined) void list()
      })
    },
    stop() {
      tab.stop()
      stopQueue()
      clearTimeout(counting)
    },
  }
}
