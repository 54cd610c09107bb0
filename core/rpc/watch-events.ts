import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  type Command,
  type FrameSchema,
  type Subscribe,
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import type { CoreContext } from '../context.ts'
import type { StartPoint } from '../log/replay-window.ts'
import type { StreamSubscription, SubscriptionSink } from '../log/stream-subscriptions.ts'
import { toErrorInfo, toServiceError } from './connect-errors.ts'
import { fromCredentials } from './visitor.ts'

type Frame = MessageInitShape<typeof FrameSchema>

/**
 * A gateway with more unread event characters than this is disconnected. It reconnects and resumes.
 */
const maxUnread = 64 * 1024 * 1024
const framesPerMessage = 1000

/** All subscriptions of one gateway on one call: commands in, batches of frames out. */
export async function* watchEvents(
  { visitorAccess, subscriptions, directory }: CoreContext,
  messages: AsyncIterable<WatchEventsRequest>,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  const frames: { frame: Frame['frame']; size: number }[] = [{ frame: { case: 'ready', value: {} }, size: 0 }]
  /** Characters of the events in `frames`. */
  let unread = 0
  let wake: () => void = () => {}
  let over = false
  const open = new Map<number, StreamSubscription | 'opening'>()

  function push(frame: Frame['frame'], size = 0) {
    frames.push({ frame, size })
    unread += size
    if (unread > maxUnread) over = true
    wake()
  }

  const sink: SubscriptionSink = {
    opened: (subscriptionId, { sessionId }, { epoch, sequence }) =>
      push({ case: 'opened', value: { subscriptionId, sessionId, epoch, sequence } }),
    event: (subscriptionIds, event) => push({ case: 'event', value: { subscriptionIds, ...event } }, event.json.length),
    advanced: (subscriptionIds, sequence) => push({ case: 'advanced', value: { subscriptionIds, sequence } }),
    paused: (subscriptionId) => push({ case: 'paused', value: { subscriptionId } }),
    closed(subscriptionId, error) {
      open.delete(subscriptionId)
      push({
        case: 'closed',
        value: { subscriptionId, error: error === undefined ? undefined : toErrorInfo(toServiceError(error)) },
      })
    },
  }

  async function subscribe({ subscriptionId: id, credentials, afterSequence, lastEventId, resumed }: Subscribe) {
    open.set(id, 'opening')
    try {
      const { session } = await visitorAccess.authorize(fromCredentials(credentials), { resumed })
      const { epoch = '' } = (await directory.conversations.get(session.conversationId)) ?? {}
      const start: StartPoint = {
        ...(afterSequence === undefined ? {} : { afterSequence }),
        ...(lastEventId === undefined ? {} : { lastEventId }),
      }
      const subscription = await subscriptions.open({ id, sink, session, epoch, start })
      // Cancelled or ended while it was opening.
      if (over || open.get(id) !== 'opening') subscriptions.close(subscription)
      else open.set(id, subscription)
    } catch (error) {
      if (open.get(id) === 'opening') sink.closed(id, error)
    }
  }

  async function readCommands() {
    for await (const { command, commands } of messages) {
      handleCommand(command)
      for (const each of commands) handleCommand(each.command)
    }
  }

  function handleCommand(command: Command['command']) {
    if (command.case === 'subscribe') void subscribe(command.value)
    else if (command.case !== undefined) {
      const { subscriptionId } = command.value
      const subscription = open.get(subscriptionId)
      if (command.case === 'unsubscribe') open.delete(subscriptionId)
      if (subscription === undefined || subscription === 'opening') return
      if (command.case === 'unsubscribe') subscriptions.close(subscription)
      else subscriptions.resume(subscription)
    }
  }

  function finish() {
    over = true
    wake()
  }

  signal.addEventListener('abort', finish, { once: true })
  readCommands().then(finish, finish)
  try {
    while (!over) {
      if (frames.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      if (over) return
      const batch = frames.splice(0, framesPerMessage)
      for (const { size } of batch) unread -= size
      yield create(WatchEventsResponseSchema, { frames: batch.map(({ frame }) => ({ frame })) })
    }
  } finally {
    over = true
    for (const subscription of open.values()) if (subscription !== 'opening') subscriptions.close(subscription)
  }
}
