import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import {
  type Conversation,
  type ConversationChanged,
  ConversationStatus,
  type InboxEvent,
} from '#proto/messaging/v1/messaging_pb.js'
import { createTabStream, type TabStreamDeps } from '../../../widget/src/tab-stream.ts'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import {
  type Entries,
  type InboxEntry,
  type InboxFilter,
  isUnread,
  mergeChange,
  mergeList,
  selectEntries,
} from './inbox-merge.ts'
import { type LinkState, type WatchOptions, watchInbox } from './inbox-watch.ts'

/** What an open conversation wants to hear. */
export interface ConversationFollower {
  /** Changes may have been missed. */
  missed(): void
  told(conversation: Conversation, events: InboxEvent[]): void
}

export interface Inbox {
  filter: Signal<InboxFilter>
  entries: ReadonlySignal<Entries>
  shown: ReadonlySignal<InboxEntry[]>
  unread: ReadonlySignal<number>
  link: ReadonlySignal<LinkState>
  loading: ReadonlySignal<boolean>
  failure: ReadonlySignal<Failure | undefined>
  /** There are more conversations behind those that are loaded. */
  hasMore: ReadonlySignal<boolean>
  loadMore(): Promise<void>
  reload(): Promise<void>
  /** Takes over what a call answered. */
  take(conversation: Conversation): void
  follow(conversationId: string, follower: ConversationFollower): () => void
  start(): void
  stop(): void
}

export interface InboxDependencies extends Pick<WatchOptions, 'now' | 'random' | 'nudges'> {
  api: Pick<Api, 'messaging'>
  /** The operator's name, for what is assigned to them. */
  me: () => string
  /** The browser's tabs share connections, so not each of them has a stream all the time. */
  platform: TabStreamDeps['platform']
}

const pageSize = 50
const statuses = {
  open: ConversationStatus.OPEN,
  closed: ConversationStatus.CLOSED,
  all: ConversationStatus.UNSPECIFIED,
}

/** The operator's inbox: lists after the stream is ready, and merges what it tells into what is listed. */
export function createInbox({ api: { messaging }, me, platform, now, random, nudges }: InboxDependencies): Inbox {
  const filter = signal<InboxFilter>({ status: 'open', mine: false, text: '' })
  const entries = signal<Entries>(new Map())
  const link = signal<LinkState>({ name: 'connecting' })
  const loading = signal(true)
  const failure = signal<Failure | undefined>(undefined)
  /** Where the list of each status goes on; null at its end. */
  const next = signal<Partial<Record<InboxFilter['status'], string | null>>>({})
  const followers = new Map<string, Set<ConversationFollower>>()
  let told = 0
  let closeStream = () => {}
  const tab = createTabStream({ platform, open: openStream, close: () => closeStream() })
  let stopStatus = () => {}

  async function list(status: InboxFilter['status'], pageToken?: string) {
    const askedAt = told
    loading.value = true
    try {
      const page = await messaging.listConversations({ limit: pageSize, status: statuses[status], pageToken })
      entries.value = mergeList(entries.value, page.conversations, askedAt)
      next.value = { ...next.value, [status]: page.nextPageToken ?? null }
      failure.value = undefined
    } catch (error) {
      failure.value = describeFailure(error)
    } finally {
      loading.value = false
    }
  }

  /** The name of a visitor is only in lists: a conversation that comes by the stream is asked for. */
  async function complete(conversationId: string) {
    const askedAt = told
    const found = await messaging.getConversation({ conversationId }).catch(() => undefined)
    if (found?.conversation) entries.value = mergeList(entries.value, [found.conversation], askedAt)
  }

  function changed({ conversation, events }: ConversationChanged) {
    if (!conversation) return
    told += 1
    const { conversationId, sessionId } = conversation
    const known = entries.value.get(conversationId)
    entries.value = mergeChange(entries.value, { conversation, events }, told)
    const renamed =
      events.some(({ type }) => type === 'session.identified') || known?.conversation.sessionId !== sessionId
    if (entries.value.has(conversationId) && (!known?.conversation.visitor || renamed)) void complete(conversationId)
    for (const follower of followers.get(conversationId) ?? []) follower.told(conversation, events)
  }

  function ready() {
    void list(filter.value.status)
    for (const group of followers.values()) for (const follower of group) follower.missed()
  }

  function openStream() {
    closeStream = watchInbox({
      messaging,
      onReady: ready,
      onChanged: changed,
      onState(state) {
        link.value = state
        if (state.name === 'live') tab.onOnline()
        if (state.name !== 'refused') return
        loading.value = false
        tab.stop()
      },
      now,
      random,
      nudges,
    })
  }

  return {
    filter,
    entries,
    link,
    loading,
    failure,
    shown: computed(() => selectEntries(entries.value, filter.value, me())),
    unread: computed(() => [...entries.value.values()].filter(isUnread).length),
    hasMore: computed(() => typeof next.value[filter.value.status] === 'string'),
    async loadMore() {
      const { status } = filter.value
      const token = next.value[status]
      if (typeof token === 'string' && !loading.value) await list(status, token)
    },
    reload: () => list(filter.value.status),
    take(conversation) {
      told += 1
      const { conversationId } = conversation
      const known = entries.value.get(conversationId)
      if (!known) return
      const { visitor, lastMessage } = known.conversation
      const merged = { ...conversation, visitor, lastMessage }
      entries.value = new Map(entries.value).set(conversationId, { ...known, toldAt: told, conversation: merged })
    },
    follow(conversationId, follower) {
      const group = followers.get(conversationId) ?? new Set()
      followers.set(conversationId, group.add(follower))
      return () => {
        group.delete(follower)
        if (group.size === 0) followers.delete(conversationId)
      }
    },
    start() {
      tab.start()
      // A status that was not listed yet is, when it is first looked at.
      stopStatus = filter.subscribe(({ status }) => {
        if (link.peek().name === 'live' && next.peek()[status] === undefined) void list(status)
      })
    },
    stop() {
      tab.stop()
      stopStatus()
    },
  }
}
