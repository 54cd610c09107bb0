import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { type WatchConversationsResponse, WatchConversationsResponseSchema } from '#proto/messaging/v1/messaging_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import type { LogEvent } from '../log/model.ts'
import { toConversation, toInboxEvent } from './messaging-values.ts'

type Frame = MessageInitShape<typeof WatchConversationsResponseSchema>['frame']

/**
 * Streams the changes of an inbox to one operator. Unread frames are bounded: a slow watcher is
 * ended with `RateLimited` (resource_exhausted) and lists again when it reconnects.
 */
export async function* watchConversations(
  { inboxWatch, states, config }: CoreContext,
  workspaceId: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<WatchConversationsResponse> {
  const frames: { frame: Frame; events: LogEvent[] }[] = []
  let wake: () => void = () => {}
  let isOver = signal.aborted
  let isTooSlow = false

  function push(frame: Frame, events: LogEvent[] = []) {
    if (frames.length >= config.INBOX_QUEUE_MAX) isTooSlow = true
    else frames.push({ frame, events })
    wake()
  }
  function finish() {
    isOver = true
    wake()
  }

  const leave = inboxWatch.add({
    workspaceId,
    ready: () => push({ case: 'ready', value: {} }),
    changed: ({ conversation, events }) =>
      push(
        { case: 'changed', value: { conversation: toConversation(conversation), events: events.map(toInboxEvent) } },
        events,
      ),
  })
  const heartbeat = setInterval(() => {
    if (frames.length === 0) push({ case: 'heartbeat', value: {} })
  }, config.HEARTBEAT_SECONDS * 1000)
  signal.addEventListener('abort', finish, { once: true })
  try {
    while (!isOver) {
      if (isTooSlow) throw new ServiceError(ErrorCode.RATE_LIMITED, { retryAfter: 1 })
      const next = frames.shift()
      if (!next) {
        await new Promise<void>((resolve) => (wake = resolve))
        continue
      }
      yield create(WatchConversationsResponseSchema, { frame: next.frame })
      // The frame was read, so the operator has these messages.
      states.markSent(next.events)
    }
  } finally {
    clearInterval(heartbeat)
    signal.removeEventListener('abort', finish)
    leave()
  }
}
