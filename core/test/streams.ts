import { readAvailability } from '../availability/availability.ts'
import { encodeAvailability } from '../availability/availability-sender.ts'
import type { RunningCore } from '../context.ts'
import { findConversations } from '../log/conversation-store.ts'
import type { SessionContent } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import {
  type StreamSubscription,
  type SubscriptionSink,
  streamSubscriptionsOf,
} from '../streams/stream-subscriptions.ts'
import { credentialsOf } from './visitor-credentials.ts'

type Open = Parameters<ReturnType<typeof streamSubscriptionsOf>['open']>[0]

/** The position at which a stream begins. */
export type StreamStart = Open['start']

/**
 * Checks the credentials of a session that opens a stream.
 *
 * @param resumed whether the stream was open on another core
 */
export async function authorizeStream(
  core: RunningCore,
  content: SessionContent,
  resumed = false,
): Promise<AuthorizedStream> {
  const { session, installation } = await visitorAccessOf(core).authorize(credentialsOf(content), { resumed })
  const [conversation] = await findConversations(core, [session.conversationId])
  const toldAvailability = encodeAvailability(await readAvailability(core, installation))
  return { session, epoch: conversation?.epoch ?? '', toldAvailability }
}

type AuthorizedStream = Pick<Open, 'session' | 'epoch' | 'toldAvailability'>

/** Opens a stream and records its events as soon as the core sends them. */
export async function openStreamAt(
  core: RunningCore,
  { session, epoch, toldAvailability }: AuthorizedStream,
  start: StreamStart,
) {
  let subscription: StreamSubscription | undefined
  let hasLeft = false
  const stream = {
    /** The sequence at which the stream began. */
    from: 0,
    /** Sequence up to which the reader has received the log. */
    position: 0,
    types: [] as string[],
    json: [] as string[],
    sequences: [] as number[],
    /** Data of the received `availability.changed` events. */
    availability: [] as { online: boolean; nextChangeAt?: string }[],
    ended: false,
    isLive: () => subscription !== undefined && !subscription.isHeld && subscription.mode === 'live',
    close() {
      hasLeft = true
      if (subscription) streamSubscriptionsOf(core).close(subscription)
    },
  }
  const sink: SubscriptionSink = {
    opened(_id, _session, { sequence }) {
      stream.from = sequence
      stream.position = sequence
    },
    event(_, { id, type, json, sequence }) {
      if (hasLeft) return
      stream.types.push(type)
      stream.json.push(json)
      if (id === '') return
      stream.sequences.push(sequence)
      stream.position = sequence
    },
    replayed(id, events) {
      for (const event of events) this.event([id], event)
    },
    advanced(_, sequence) {
      if (!hasLeft) stream.position = sequence
    },
    availability(_, { data }) {
      if (!hasLeft) stream.availability.push(JSON.parse(data))
    },
    paused: () => setImmediate(() => subscription && streamSubscriptionsOf(core).resume(subscription)),
    closed() {
      stream.ended = true
    },
  }
  subscription = await streamSubscriptionsOf(core).open({ id: 1, sink, session, epoch, start, toldAvailability })
  return stream
}

export type TestStream = Awaited<ReturnType<typeof openStreamAt>>
