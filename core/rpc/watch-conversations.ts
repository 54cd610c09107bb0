import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type WatchConversationsResponse, WatchConversationsResponseSchema } from '#proto/messaging/v1/messaging_pb.js'
import { operatorPresenceOf } from '../availability/operator-presence.ts'
import { createTurns } from '../concurrency/turns.ts'
import { isReadable } from '../conversations/conversation-access.ts'
import { inboxWatchOf } from '../conversations/inbox-watch.ts'
import { sentMarksOf } from '../conversations/message-states.ts'
import { visitorPresenceOf } from '../conversations/visitor-presence.ts'
import { type Core, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { LogEvent } from '../log-event.ts'
import type { Caller } from '../workspaces/access.ts'
import { presenceStates, toConversation, toInboxEvent } from './messaging-values.ts'
import { unreadFramesOf } from './watch-events.ts'

type Frame = MessageInitShape<typeof WatchConversationsResponseSchema>['frame']

/** The pause between heartbeats. The console closes a stream that is silent for longer. */
const heartbeatMs = 15_000

/** Approximate memory of the unread frames of one inbox stream, in bytes. */
const maxUnread = 32 * 1024 * 1024
/** Memory of a frame or an event in addition to its texts. */
const partBytes = 512
const presenceBytes = 128

/** Limits the inbox streams that open, or get a frame, in one turn of the event loop. */
const inboxTurnsOf = perCore(() => createTurns(8))

/**
 * Streams the changes of an inbox to one operator. A client that reads too slowly gets `RateLimited`
 * (resource_exhausted), connects again and lists the conversations.
 */
export async function* watchConversations(
  core: Core,
  { workspaceId, scopes }: Pick<Caller, 'workspaceId' | 'scopes'>,
  signal: AbortSignal,
): AsyncGenerator<WatchConversationsResponse> {
  const { config } = core
  await inboxTurnsOf(core)()
  /** Frames are built when they are sent, because hundreds of inboxes wait with the same changes. */
  const frames: { build: () => Frame; events: LogEvent[]; size: number }[] = []
  const unread = unreadFramesOf(core).join(maxUnread)
  let wake: () => void = () => {}
  let isOver = signal.aborted
  let isTooSlow = false

  function push(build: () => Frame, events: LogEvent[] = [], bytes = 0) {
    if (isTooSlow) return
    const size = events.reduce((sum, { message }) => sum + partBytes + (message?.body.length ?? 0), partBytes + bytes)
    if (frames.length < config.INBOX_QUEUE_MAX && unread.take(size)) frames.push({ build, events, size })
    else {
      isTooSlow = true
      frames.length = 0
      unread.leave()
    }
    wake()
  }
  function finish() {
    isOver = true
    wake()
  }

  const leave = inboxWatchOf(core).add({
    workspaceId,
    ready: () => push(() => ({ case: 'ready', value: {} })),
    changed: ({ conversation, events }) => {
      const shown = events.filter(({ type }) => isReadable(type, scopes))
      if (shown.length === 0) return
      const build = () => ({ conversation: toConversation(conversation), events: shown.map(toInboxEvent) })
      push(() => ({ case: 'changed', value: build() }), shown)
    },
    removed: (conversationIds) => push(() => ({ case: 'removed', value: { conversationIds } })),
    grew: (messages) => {
      const bytes = messages.reduce((sum, { text }) => sum + partBytes + text.length, 0)
      push(() => ({ case: 'grew', value: { messages } }), [], bytes)
    },
    noted: (conversationId) => push(() => ({ case: 'notes', value: { conversationId } })),
  })
  const leavePresence = operatorPresenceOf(core).enter(workspaceId)
  const leaveVisitors = visitorPresenceOf(core).watch(workspaceId, (changes, complete) => {
    const build = () =>
      changes.map(({ conversationId, presence }) => ({ conversationId, presence: presenceStates[presence] }))
    push(() => ({ case: 'presence', value: { complete, conversations: build() } }), [], changes.length * presenceBytes)
  })
  const heartbeat = setInterval(() => {
    if (frames.length === 0) push(() => ({ case: 'heartbeat', value: {} }))
  }, heartbeatMs)
  signal.addEventListener('abort', finish, { once: true })
  try {
    while (!isOver) {
      if (isTooSlow) throw new ServiceError('RateLimited', { retryAfter: 1 })
      if (frames.length === 0) {
        await new Promise<void>((resolve) => (wake = resolve))
        continue
      }
      await inboxTurnsOf(core)()
      const next = frames.shift()
      if (!next) continue
      unread.giveBack(next.size)
      yield create(WatchConversationsResponseSchema, { frame: next.build() })
      // The operator has received these messages, because the frame was read.
      sentMarksOf(core).mark(next.events)
    }
  } finally {
    clearInterval(heartbeat)
    unread.leave()
    signal.removeEventListener('abort', finish)
    leave()
    leavePresence()
    leaveVisitors()
  }
}
