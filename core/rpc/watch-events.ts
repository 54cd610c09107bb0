import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import {
  type Command,
  type FrameSchema,
  Presence,
  type Subscribe,
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { encodeStreamedEvent } from '../../contract/event-stream.ts'
import { readAvailability } from '../availability/availability.ts'
import { encodeAvailability } from '../availability/availability-sender.ts'
import { createSharedBytes } from '../concurrency/shared-bytes.ts'
import { epochOf } from '../conversations/conversation-access.ts'
import { visitorPresenceOf } from '../conversations/visitor-presence.ts'
import { type Core, perCore } from '../core.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import {
  type StreamSubscription,
  type SubscriptionSink,
  streamSubscriptionsOf,
} from '../streams/stream-subscriptions.ts'
import { toErrorInfo } from '../transport/connect-errors.ts'
import { fromCredentials } from './proto-values.ts'

type Frame = MessageInitShape<typeof FrameSchema>

/** Approximate bytes of a gateway's unread frames. A gateway with more is disconnected and resumes its streams. */
const maxUnread = 64 * 1024 * 1024
/** Memory of a frame in addition to its texts and ids. */
const frameBytes = 256
const idBytes = 8
/** Subscriptions of one gateway, including those that are opening. */
const maxSubscriptions = 100_000
const framesPerMessage = 1000
/**
 * A message gets no further frame at this size. Messages of megabytes cost several times as much for each
 * byte, because the encoder copies them.
 */
const messageBytes = 64 * 1024

/** Memory of frames that gateways and operators have not read yet. */
export const unreadFramesOf = perCore(() => createSharedBytes(256 * 1024 * 1024))

/** Serves all subscriptions of a gateway with one call. */
export async function* watchEvents(
  core: Core,
  messages: AsyncIterable<WatchEventsRequest>,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  const frames: { frame: Frame['frame']; size: number }[] = []
  const unread = unreadFramesOf(core).join(maxUnread)
  let wake: () => void = () => {}
  let over = false
  /** Values that are sent with `opened`, by subscription id. */
  const told = new Map<number, { availability: string; workspaceId: string }>()
  const open = new Map<number, StreamSubscription | 'opening'>()
  const visitors = visitorPresenceOf(core).addSource()

  function push(frame: Frame['frame'], ids: readonly number[] = [], text = '') {
    if (over) return
    const size = frameBytes + ids.length * idBytes + text.length
    if (unread.take(size)) frames.push({ frame, size })
    else {
      frames.length = 0
      unread.leave()
      over = true
    }
    wake()
  }

  const sink: SubscriptionSink = {
    opened(subscriptionId, { sessionId, conversationId }, { epoch, sequence }) {
      const values = { sessionId, conversationId, epoch, sequence, ...told.get(subscriptionId) }
      told.delete(subscriptionId)
      push({ case: 'opened', value: { subscriptionId, ...values } })
    },
    event: (subscriptionIds, event) =>
      push({ case: 'event', value: { subscriptionIds, ...event } }, subscriptionIds, event.json),
    replayed(subscriptionId, events) {
      const text = events.map(encodeStreamedEvent).join('')
      const sequence = events.at(-1)?.sequence
      const value = { subscriptionId, sequence, events: events.length, text: Buffer.from(text) }
      push({ case: 'replayed', value }, [], text)
    },
    advanced: (subscriptionIds, sequence) =>
      push({ case: 'advanced', value: { subscriptionIds, sequence } }, subscriptionIds),
    availability(subscriptionIds, { occurredAt, data }) {
      const value = { subscriptionIds, occurredAt: timestampFromDate(occurredAt), data }
      push({ case: 'availability', value }, subscriptionIds, data)
    },
    paused: (subscriptionId) => push({ case: 'paused', value: { subscriptionId } }),
    closed(subscriptionId, error) {
      open.delete(subscriptionId)
      push({
        case: 'closed',
        value: { subscriptionId, error: error === undefined ? undefined : toErrorInfo(error) },
      })
    },
  }

  async function subscribe({ subscriptionId: id, credentials, afterSequence, lastEventId, resumed }: Subscribe) {
    // Only a faulty gateway uses the id of an open subscription, or has so many.
    if (open.has(id) || open.size >= maxSubscriptions) return finish()
    open.set(id, 'opening')
    try {
      const { session, installation } = await visitorAccessOf(core).authorize(fromCredentials(credentials), { resumed })
      const toldAvailability = encodeAvailability(await readAvailability(core, installation))
      told.set(id, { availability: toldAvailability, workspaceId: session.workspaceId })
      const epoch = (await epochOf(core, session.conversationId)) ?? ''
      const start = { afterSequence, lastEventId }
      const subscription = await streamSubscriptionsOf(core).open({ id, sink, session, epoch, start, toldAvailability })
      if (!over && open.get(id) === 'opening') return void open.set(id, subscription)
      // While the subscription was opening, the gateway cancelled it or the call ended.
      told.delete(id)
      streamSubscriptionsOf(core).close(subscription)
    } catch (error) {
      told.delete(id)
      if (open.get(id) === 'opening') sink.closed(id, error)
    }
  }

  async function readCommands() {
    for await (const { commands } of messages) for (const { command } of commands) handleCommand(command)
  }

  function handleCommand(command: Command['command']) {
    if (command.case === 'subscribe') void subscribe(command.value)
    else if (command.case === 'presence') {
      const reports = command.value.reports.map(({ presence, ...report }) => ({
        ...report,
        isHere: presence === Presence.HERE,
      }))
      visitors.update({ ...command.value, reports })
    } else if (command.case !== undefined) {
      const { subscriptionId } = command.value
      const subscription = open.get(subscriptionId)
      if (command.case === 'unsubscribe') open.delete(subscriptionId)
      if (subscription === undefined || subscription === 'opening') return
      if (command.case === 'unsubscribe') streamSubscriptionsOf(core).close(subscription)
      else streamSubscriptionsOf(core).resume(subscription)
    }
  }

  function finish() {
    over = true
    wake()
  }

  push({ case: 'ready', value: {} })
  signal.addEventListener('abort', finish, { once: true })
  readCommands().then(finish, finish)
  try {
    while (!over) {
      if (frames.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      if (over) return
      const batch = frames.splice(0, countOfMessage(frames))
      for (const { size } of batch) unread.giveBack(size)
      yield create(WatchEventsResponseSchema, { frames: batch.map(({ frame }) => ({ frame })) })
    }
  } finally {
    over = true
    unread.leave()
    visitors.end()
    for (const subscription of open.values())
      if (subscription !== 'opening') streamSubscriptionsOf(core).close(subscription)
  }
}

function countOfMessage(frames: { size: number }[]) {
  const most = Math.min(frames.length, framesPerMessage)
  for (let count = 0, bytes = 0; count < most; count += 1) {
    if (bytes >= messageBytes) return count
    bytes += frames[count]!.size
  }
  return most
}
