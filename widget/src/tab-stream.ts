import type { LifecycleSignal, Platform, TabSlot, TimerId } from './platform.ts'

/**
 * Streams of one page origin over HTTP/1.1. A browser opens six connections to a host; the others are for calls, and for
 * other origins of the same site.
 */
const slotsPerOrigin = 2
/** The service allows six streams of one session and closes the oldest. One is left for a stream that is just ending. */
const slotsPerSession = 5
/** A stream stays open this long before a waiting tab gets its slot. Events that were missed arrive at once. */
const turnMs = 1_500
/**
 * Even where no tab waits, the stream is closed and opened again after this time. Tabs of other origins, whose locks are not
 * ours, may wait for one of the browser's connections, and the freed one is theirs first.
 */
const longestTurnMs = 60_000
/** A tab that waited this long takes a slot away: its holder is frozen or hangs, or very many tabs wait. */
const patienceMs = 15_000

export interface TabStreamDeps {
  platform: Pick<Platform, 'clock' | 'lifecycle' | 'tabs'>
  /** The tabs of one session have one name, and no other tab has it. Left out: over HTTP/2 there is no limit. */
  session?: string
  /** Opens the stream. It resumes where it was closed. */
  open(): void
  close(): void
}

/**
 * Decides when this tab has an event stream. Over HTTP/1.1 the tabs of an origin share a few slots: a hidden tab has none, and
 * visible tabs take turns while others wait. Over HTTP/2 only the tabs of one session, which are duplicates, share slots.
 * Without locks every visible tab has a stream.
 */
export function createTabStream({ platform: { clock, lifecycle, tabs }, session, open, close }: TabStreamDeps) {
  let slot: TabSlot | undefined
  let isOpen = false
  let openedAtMs = 0
  let timer: TimerId
  let unsubscribe = () => {}

  return {
    start() {
      unsubscribe = lifecycle.subscribe(onLifecycle)
      join()
    },

    stop() {
      unsubscribe()
      leave()
    },

    /** The stream is online. The turn begins here, so that a slow connection gets its events too. */
    onOnline() {
      if (isOpen) wait(endTurn, turnMs)
    },
  }

  function sharesConnections() {
    return tabs?.isMultiplexed() === false
  }

  function join() {
    if (slot || isOpen) return
    const shares = sharesConnections()
    // The protocol may become known while the tab is hidden.
    if (shares && lifecycle.isHidden?.()) return wait(join, patienceMs)
    const name = shares ? 'service.streams' : session
    slot = name ? tabs?.waitForSlot(name, shares ? slotsPerOrigin : slotsPerSession, onGranted, rejoin) : undefined
    if (slot) wait(slot.steal, patienceMs)
    else onGranted()
  }

  function leave() {
    clock.clearTimeout(timer)
    if (isOpen) close()
    isOpen = false
    slot?.release()
    slot = undefined
  }

  function rejoin() {
    leave()
    join()
  }

  function onGranted() {
    isOpen = true
    openedAtMs = clock.now()
    wait(endTurn, turnMs * 5)
    open()
  }

  async function endTurn() {
    if (!sharesConnections()) return
    const held = slot
    // The clock may have been set back.
    const isOver = Math.abs(clock.now() - openedAtMs) >= longestTurnMs || (await held?.isWanted())
    if (!isOpen || slot !== held) return
    if (isOver) rejoin()
    else wait(endTurn, turnMs)
  }

  function wait(callback: () => void, ms: number) {
    clock.clearTimeout(timer)
    timer = clock.setTimeout(callback, ms)
  }

  function onLifecycle(signal: LifecycleSignal) {
    // A page with a request or a lock is not kept for the back button, and a frozen page must not hold a slot.
    if (signal === 'pagehide') leave()
    else if (signal !== 'hidden') join()
    else if (sharesConnections()) rejoin()
  }
}
