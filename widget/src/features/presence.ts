import { isTeam } from '../../../browser/chat/messages.ts'
import type { TimerId } from '../../../browser/platform.ts'
import type { HistoryPage } from '../vocabulary/gen/wire.ts'
import type { Activity, Agent, MessageAuthor, Presence, RatingState, StreamEvent } from '../vocabulary/types.ts'
import type { FeatureParts } from './feature-parts.ts'

/** Time after which an agent's typing indicator is removed. */
const typingLastsMs = 8_000
const activityAtMost = 40

type PresenceKeeper = ReturnType<typeof createPresence>
export type PartsWithPresence = FeatureParts & { presence: PresenceKeeper }

/** Tracks the assigned agent, agents' typing indicators, and conversation events other than messages. */
export function createPresence({ platform: { clock }, emitter, records }: FeatureParts) {
  const typing = new Map<string, { author: MessageAuthor; timer: TimerId }>()
  /** Authors of messages that grow. They write, without events of typing. */
  let growing: MessageAuthor[] = []
  let lastSequence = 0

  emitter.on('message.received', ({ message }) => {
    note(message.sequence)
    if (isTeam(message.author) && stopTyping(message.author)) emitChanged()
  })
  emitter.on('message.accepted', ({ message }) => note(message.sequence))
  emitter.on('messages.changed', ({ messages }) => {
    for (const { sequence } of messages) note(sequence)
    const now = messages.filter(({ growing }) => growing).map(({ author }) => author)
    if (JSON.stringify(now) === JSON.stringify(growing)) return
    growing = now
    emitChanged()
  })

  return {
    presence,
    activity: (): readonly Activity[] => records.current().activity,

    /**
     * Adds an activity, such as the outcome of an agent's request. An activity without a sequence
     * number is shown after the current messages.
     */
    add,

    handleEvent({ type, sequence, occurredAt, data }: StreamEvent) {
      note(sequence)
      if (type === 'typing.started' || type === 'typing.stopped') {
        const author = data.author as MessageAuthor | undefined
        if (!author || !isTeam(author)) return
        stopTyping(author)
        if (type === 'typing.started') startTyping(author)
        emitChanged()
      } else if (type === 'agent.assigned' || type === 'agent.unassigned') {
        const agent = data.agent as Agent | undefined
        if (typeof agent?.displayName !== 'string') return
        const isAssigned = type === 'agent.assigned'
        if (isAssigned) records.change({ agent })
        else if (records.current().agent?.displayName === agent.displayName) records.change({ agent: undefined })
        add(type, { agentName: agent.displayName, sequence, at: occurredAt })
      } else if (type === 'conversation.closed' || type === 'conversation.reopened') {
        records.change({ isClosed: type === 'conversation.closed', rating: undefined })
        add(type, { sequence, at: occurredAt })
      } else if (type === 'rating.requested' || type === 'rating.given') {
        setRating(type === 'rating.given' ? 'given' : 'requested')
      }
    },

    setRating,

    takePage({ rating, lastSequence: end }: Pick<HistoryPage, 'rating' | 'lastSequence'>) {
      // An event after this page may have changed the state.
      if (end >= lastSequence) setRating(rating)
    },

    reset() {
      for (const { timer } of typing.values()) clock.clearTimeout(timer)
      typing.clear()
      lastSequence = 0
      emitChanged()
    },
  }

  function presence(): Presence {
    const { agent, isClosed, rating } = records.current()
    return { agent, isClosed, rating, typing: [...[...typing.values()].map(({ author }) => author), ...growing] }
  }

  function setRating(rating: RatingState | undefined) {
    const { isClosed, rating: before } = records.current()
    if (rating === before) return
    records.change({ rating, isClosed: isClosed || rating !== undefined })
    emitChanged()
  }

  function add(type: Activity['type'], about: Partial<Omit<Activity, 'type'>> = {}) {
    const at = new Date(clock.now()).toISOString()
    const { activity } = records.current()
    const key = `${type}-${about.sequence ?? at}-${activity.length}`
    const isKnown = activity.some((one) => one.type === type && one.sequence === about.sequence)
    if (about.sequence !== undefined && isKnown) return
    const entry = { key, type, at, sequence: lastSequence, ...about }
    records.change({ activity: [...activity, entry].slice(-activityAtMost) })
    emitChanged()
  }

  function note(sequence: number | undefined) {
    if (sequence !== undefined && sequence > lastSequence) lastSequence = sequence
  }

  function startTyping(author: MessageAuthor) {
    const timer = clock.setTimeout(() => {
      typing.delete(nameOf(author))
      emitter.emit('typing.stopped', { author })
      emitChanged()
    }, typingLastsMs)
    typing.set(nameOf(author), { author, timer })
  }

  function stopTyping(author: MessageAuthor) {
    clock.clearTimeout(typing.get(nameOf(author))?.timer)
    return typing.delete(nameOf(author))
  }

  function emitChanged() {
    emitter.emit('presence.changed', { presence: presence(), activity: records.current().activity })
  }
}

const nameOf = ({ displayName = '' }: MessageAuthor) => displayName
