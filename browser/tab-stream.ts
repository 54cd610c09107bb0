import type { LifecycleSignal, Platform, TabSlot, TimerId } from './platform.ts'

/**
 * Maximum number of streams that the tabs of one origin open over HTTP/1.1. Browsers open at most
 * six connections to a host. The other four connections remain free for other requests, and for
 * pages of the site's other origins.
 */
const slotsPerOrigin = 2
/**
 * Maximum number of streams that the tabs of one session open. The service allows six streams and
 * closes the oldest one if there are more. The sixth is reserved for a stream that is still being
 * closed.
 */
const slotsPerSession = 5
/** Minimum time that a tab keeps its stream while others wait. Missed events arrive right after connecting. */
const turnMs = 1_500
/**
 * Maximum time that a tab keeps its stream. Tabs of other origins use other locks, so this tab
 * cannot see that they wait for the same connections. So each stream must close from time to time.
 */
const longestTurnMs = 60_000
/** Time after which a waiting tab steals a slot: its holder is frozen, or many tabs wait. */
const stealAfterMs = 15_000

export interface TabStreamDeps {
  platform: Pick<Platform, 'clock' | 'lifecycle' | 'tabs'>
  /** Name of the slots that the tabs of one session share. Without it, HTTP/2 streams are not limited. */
  session?: string
  /** Opens the stream. If it was open before, it continues at the position where it was closed. */
  open(): void
  close(): void
}

/**
 * Decides when this tab has an event stream. A tab needs a slot (see `Tabs`) to open its stream.
 * Over HTTP/1.1, the tabs of an origin share a few slots: visible tabs take turns, and hidden tabs
 * have no stream. Over HTTP/2, only tabs of the same session share slots. In a browser without
 * locks, every visible tab has a stream.
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

    /** Restarts this tab's turn when the stream is connected, so that a slow connection gets its events. */
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
    // Over HTTP/1.1, a hidden tab opens no stream. The browser may detect HTTP/2 meanwhile.
    if (shares && lifecycle.isHidden?.()) return wait(join, stealAfterMs)
    const name = shares ? 'service.streams' : session
    slot = name ? tabs?.waitForSlot(name, shares ? slotsPerOrigin : slotsPerSession, onGranted, rejoin) : undefined
    if (slot) wait(slot.steal, stealAfterMs)
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
    // The clock may have been set back, so compare the absolute value of the difference.
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
    // An open request or lock keeps a page out of the back/forward cache. A frozen page must hold no slot.
    if (signal === 'pagehide') leave()
    else if (signal !== 'hidden') join()
    else if (sharesConnections()) rejoin()
  }
}
