import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import type { Bus } from '../bus.ts'
import { createJobs } from '../concurrency/job.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import type { GrownPart, LogEvent } from '../log-event.ts'
import { createChangeConfirmations } from './change-confirmations.ts'
import { createWakeupStore, type PassedEnds, type WakeupDocument } from './wakeup-store.ts'
import { createWakeupWriter, headsOf } from './wakeup-writer.ts'

/** Delay of log ends if no other core is known. They are written only for a core that has just started. */
const unawaitedPaceMs = 100
/** Delay of hints if no other core is known. It is longer, so that the next log end takes them along. */
const unawaitedHintMs = 1_000

/** Pause before a lost cursor is opened again. */
const CURSOR_PAUSES = { minMs: 50, maxMs: 1_000 }

/** Caches are current while the last complete read of wake-ups began less than this time ago. */
const currentForMs = 900
/** Time after which a core that has not confirmed a change no longer acts on earlier state. */
const confirmedWithinMs = currentForMs + 100

/** Routine checks use cached state for this time after a read. A core that rests reads once a second. */
const inContactForMs = 1_500

/** A core proves that it is current until this time after somebody needed it. */
const neededForMs = 2_000

/** Interval at which state is read while the result of an announced change is unknown. */
const rereadEveryMs = 400
/** Time within which the write of an announced change succeeds or fails. */
const unknownForMs = 10_000

/** Names this process in the wake-ups. */
export const processIdOf = perCore((): string => randomUUID())

export const wakeupStoreOf = perCore(({ db: { wakeups }, nudge }) => createWakeupStore({ wakeups, nudge }))

/**
 * How long wake-ups are kept. Cursors read them within a second. Wake-ups contain ids and events, so they
 * must be gone within the minute after which a removal ends.
 */
const keptMs = 30_000
const sweepEveryMs = 60_000

/** Removes old wake-ups. Returns whether none is left. The newest one stays until a later call. */
export const sweepWakeups = (core: Core): Promise<boolean> =>
  wakeupStoreOf(core).removeBefore(dateOf(core, -keptMs), dateOf(core))

export const wakeupJobs = (core: Core) =>
  createJobs(core, { 'sweep of wake-ups': [sweepEveryMs, () => sweepWakeups(core)] })

/**
 * Sends wake-ups between the cores, through a capped collection that every core follows. The collection
 * has everything in one order: new ends of logs, changes before and after their write, confirmations of
 * changes, and beats by which a core proves that it has read everything.
 */
export const wakeupsOf = perCore((core) => {
  const { keyring, bus, logger, metrics, now } = core
  const store = wakeupStoreOf(core)
  const processId = processIdOf(core)
  const monotonic = () => performance.now()
  const writer = createWakeupWriter(core, store, processId)
  /** Every change before the start of the last beat that this process has written and read has arrived. */
  let currentAsOf = Number.NEGATIVE_INFINITY
  let readAt = Number.NEGATIVE_INFINITY
  /** Time at which somebody last needed the proof that this process is current. */
  let neededAt = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()
  const pending = createPendingChanges(bus, monotonic)
  const confirmations = createChangeConfirmations(processId, confirmedWithinMs, monotonic)
  const settlers: (() => Promise<void>)[] = []
  let isFollowing = false
  let later: NodeJS.Timeout | undefined
  let laterAt = Number.POSITIVE_INFINITY
  let passing: { events: LogEvent[]; grown: GrownPart[] } = { events: [], grown: [] }
  const stopping = new AbortController()
  const caughtUpOnce = Promise.withResolvers<void>()

  function measureLag({ at }: WakeupDocument) {
    // Wake-ups from before this process began to follow would look late.
    if (currentAsOf === Number.NEGATIVE_INFINITY) return
    metrics.wakeupLag.observe(Math.max(0, now() - at.getTime()) / 1000)
  }

  const settled = async () => void (await Promise.all(settlers.map((settle) => settle())))

  function confirm({ from, changes: number = 0, awaited, at }: WakeupDocument) {
    if (!awaited || now() - at.getTime() >= unknownForMs) return
    void settled().then(() => {
      const { confirmed } = writer.next()
      confirmed.set(from, Math.max(number, confirmed.get(from) ?? 0))
      publish()
    })
  }

  function caughtUp(asOf: number) {
    const mayHaveMissed = !isProven()
    currentAsOf = Math.max(currentAsOf, asOf)
    noteCores()
    caughtUpOnce.resolve()
    if (mayHaveMissed && isProven()) bus.emit('current')
  }

  function noteCores() {
    metrics.peers.set(confirmations.others())
    const before = keyring.current('access-grant').kid
    keyring.choose()
    const { kid } = keyring.current('access-grant')
    if (kid !== before) logger.info({ kid }, 'signs and seals with another key: the first one that every core knows')
  }

  const isProven = () => monotonic() - currentAsOf < currentForMs
  const isNeeded = () => monotonic() - neededAt < neededForMs
  const hasPeers = () => confirmations.others() > 0

  /**
   * Whether every change older than a second has arrived here. The first call after a rest returns false,
   * and begins the proof.
   *
   * A routine check needs no proof, so that a core rests while streams are open. It only asks whether
   * wake-ups are read: a change then drops the cached state as soon as it is announced.
   */
  function isCurrent(isRoutine = false) {
    if (isRoutine) return monotonic() - readAt < inContactForMs
    const hasRested = !isNeeded()
    neededAt = monotonic()
    if (hasRested) store.wake()
    return isProven()
  }

  const maySend = () => !isFollowing || isCurrent()

  function announceEnds({ heads, grown = [] }: PassedEnds) {
    for (const [conversationId, sequence, closed, event, waitingSince = event?.waitingSince] of heads)
      bus.emit('advanced', conversationId, { sequence, closed, waitingSince }, event ?? undefined)
    for (const part of grown) bus.emit('grewElsewhere', part)
  }

  function announce({ heads, grown, changed, announced: begun = [], ended = [], at }: WakeupDocument) {
    announceEnds({ heads, grown })
    if (changed.length > 0) bus.emit('changed', changed)
    for (const change of ended) pending.remove(change)
    // The cursor also reads old wake-ups, for example after the start of this process.
    if (now() - at.getTime() < unknownForMs) for (const { change, ids } of begun) pending.add(change, ids)
  }

  function publish() {
    writer.publish().catch(() => {}) // The writer logs the error.
  }

  /** Announces a change of these ids. Resolves when it has taken effect in every process. */
  async function stateChanged(...ids: string[]) {
    if (ids.length === 0) return
    const next = writer.next()
    for (const id of ids) next.changed.add(id)
    next.isHint = false
    next.isAwaited = true
    bus.emit('changed', ids)
    const changes = await writer.publish()
    void settled().then(() => confirmations.confirmedBy(processId, changes))
    // A process that has not started reads no confirmations, and serves no clients.
    if (isFollowing) await confirmations.applied(changes)
  }

  function receive(wakeup: WakeupDocument) {
    const { from, beat, kids = [], changes = 0, confirmed = [] } = wakeup
    if (from === processId) return confirmations.arrived(changes)
    if (beat) {
      confirmations.beatOf(from)
      keyring.announcedBy(from, kids)
      if (currentAsOf !== Number.NEGATIVE_INFINITY) noteCores()
    }
    if (!beat) measureLag(wakeup)
    announce(wakeup)
    confirm(wakeup)
    for (const [id, number] of confirmed) if (id === processId) confirmations.confirmedBy(from, number)
  }

  async function follow() {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      try {
        const { kids } = keyring
        const reader = { from: processId, kids, isNeeded, hasPeers, signal: stopping.signal, now }
        for await (const next of store.follow(reader)) {
          failures = 0
          readAt = monotonic()
          if ('from' in next) receive(next)
          else {
            if (currentAsOf === Number.NEGATIVE_INFINITY) bus.emit('gap')
            caughtUp(next.asOf)
          }
        }
      } catch (error) {
        if (!stopping.signal.aborted) logFailure(logger, 'wake-ups lost; opening a new cursor')(error)
      }
      currentAsOf = Number.NEGATIVE_INFINITY
      readAt = Number.NEGATIVE_INFINITY
      // Rejects when the service stops. The loop then ends.
      await delay(backoffMs(failures + 1, CURSOR_PAUSES), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  function publishLater(inMs: number) {
    const at = performance.now() + inMs
    if (at >= laterAt) return
    clearTimeout(later)
    laterAt = at
    later = setTimeout(() => {
      laterAt = Number.POSITIVE_INFINITY
      publish()
    }, inMs)
  }

  /** Passes an event or a part together with the others of its batch. */
  function pass(add: (to: typeof passing) => void) {
    const isFirst = passing.events.length + passing.grown.length === 0
    add(passing)
    if (!isFirst) return
    queueMicrotask(() => {
      const { events, grown } = passing
      passing = { events: [], grown: [] }
      store.nudge?.pass({ heads: headsOf(events), grown })
    })
  }

  /** Writes the waiting wake-ups. Resolves even if a write fails. */
  async function flush() {
    clearTimeout(later)
    laterAt = Number.POSITIVE_INFINITY
    publish()
    await writer.settled()
  }

  bus.on('appended', (event) => {
    const { ends } = writer.next()
    const { conversationId, sequence } = event
    if ((ends.get(conversationId)?.sequence ?? 0) < sequence) ends.set(conversationId, event)
    if (store.nudge) pass(({ events }) => events.push(event))
    if (store.nudge || !hasPeers()) publishLater(unawaitedPaceMs)
    else publish()
  })
  bus.on('grew', (part) => {
    if (store.nudge) pass(({ grown }) => grown.push(part))
    else if (hasPeers()) {
      writer.next().grown.push(part)
      publish()
    }
  })
  store.nudge?.onPassed(announceEnds)

  return {
    stateChanged,
    /**
     * Like `stateChanged`, for changes that may take effect a little later. Waits for no journal and no
     * confirmation.
     */
    async hint(...ids: string[]) {
      for (const id of ids) writer.next().changed.add(id)
      bus.emit('changed', ids)
      if (!hasPeers()) publishLater(unawaitedHintMs)
      else await writer.publish()
    },

    /** `settle` resolves when the changes that were emitted so far have taken effect in this process. */
    settleWith: (settle: () => Promise<void>): void => void settlers.push(settle),
    /**
     * Runs a write that changes the state of these ids, and announces it before and after. If this
     * process dies during the write, or its result is unknown, every process reads the state again
     * several times, and so finds the change within a second. Errors: those of the announcement and of
     * the write.
     */
    async changing<T>(ids: string[], write: () => Promise<T>) {
      const change = randomUUID()
      pending.add(change, ids)
      const next = writer.next()
      next.isHint = false
      next.announced.push({ change, ids })
      await writer.publish()
      const result = await write()
      pending.remove(change)
      writer.next().ended.push(change)
      await stateChanged(...ids)
      return result
    },

    isCurrent,
    /**
     * Whether streams may send events. False while other processes may have confirmed changes to their
     * callers that this process does not know yet. `current` is emitted when it is true again.
     */
    maySend,
    /** Whether this process reads wake-ups and knows no other process. */
    isAlone: () => isCurrent(true) && !hasPeers(),
    /** Must be called before the first call of a client. */
    start() {
      isFollowing = true
      neededAt = monotonic()
      following = follow()
    },

    /** Resolves when this process has read what the others have announced, or after this time. */
    caughtUp: (atMostMs: number): Promise<void> =>
      Promise.race([caughtUpOnce.promise, delay(atMostMs, undefined, { ref: false })]),
    flush,
    async stop() {
      stopping.abort()
      confirmations.stop()
      pending.stop()
      await Promise.allSettled([following, flush()])
    },
  }
})

export type Wakeups = ReturnType<typeof wakeupsOf>

/**
 * Emits `changed` again and again for announced changes whose result is unknown. So readers find a
 * change even if the process died after the write and sent no wake-up for it.
 */
function createPendingChanges(bus: Bus, monotonic: () => number) {
  const pending = new Map<string, { ids: string[]; until: number }>()
  let timer: NodeJS.Timeout | undefined

  function reread() {
    bus.emit('changed', [...new Set([...pending.values()].flatMap(({ ids }) => ids))])
    for (const [change, { until }] of pending) if (until <= monotonic()) pending.delete(change)
    stopIfEmpty()
  }

  function stopIfEmpty() {
    if (pending.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add(change: string, ids: string[]) {
      pending.set(change, { ids, until: monotonic() + unknownForMs })
      timer ??= setInterval(reread, rereadEveryMs)
    },

    /** Forgets a change, because its result is known. */
    remove(change: string) {
      pending.delete(change)
      stopIfEmpty()
    },

    stop() {
      pending.clear()
      stopIfEmpty()
    },
  }
}
