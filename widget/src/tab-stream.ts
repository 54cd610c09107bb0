import { terminalEvents } from './errors.ts'
import { createEventStream, type EventStreamDeps } from './event-stream.ts'
import type { LifecycleSignal, Platform, TabSeat, TimerId } from './platform.ts'
import type { SessionEnd, StreamEvent } from './types.ts'

/** So long a tab waits for the leading one to answer before it helps itself. */
const answerWithinMs = 2_000
/** Events that the leader keeps for a tab that comes a moment late. */
const recentAtMost = 50

/** What tabs tell each other. Never a credential: every page of the origin can listen. */
interface TabMessage {
  /** A tab wants what came after this sequence. */
  ask?: number
  /** An event of the leader's stream, and the position that the leader had before it. */
  event?: StreamEvent
  after?: number
  /** Where the leader's stream is. */
  at?: { sequence: number; lastEventId?: string }
  state?: StreamState
}

type StreamState = 'connecting' | 'online' | 'reconnecting'

export interface TabStreamDeps extends Omit<EventStreamDeps, 'onHeard' | 'onBeat'> {
  platform: EventStreamDeps['platform'] & Pick<Platform, 'tabs'>
  /** The tabs of one session have one name, and no other tab has it. */
  name: string
}

/**
 * One event stream for all tabs of a session (a duplicated tab shares the session of the first). One tab leads: it has the
 * stream and passes on each event; the others follow, each with a position of its own. When the leader goes, another takes
 * over from where it is itself, so nothing is lost or doubled. A tab that finds itself behind and is not helped, or hears
 * nothing, opens a stream of its own, as does every tab of a browser without locks and channels.
 */
export function createTabStream(deps: TabStreamDeps) {
  const { clock, lifecycle, tabs } = deps.platform
  let { position } = deps
  let state: StreamState = 'connecting'
  let stream: ReturnType<typeof createEventStream> | undefined
  let seat: TabSeat | undefined
  let leads = false
  let asked = false
  let recent: TabMessage[] = []
  let timer: TimerId
  let unsubscribe = () => {}

  return {
    start() {
      unsubscribe = lifecycle.subscribe(onLifecycle)
      join()
    },
    stop,
  }

  function join() {
    seat = tabs?.join(deps.name, lead, onMessage)
    if (!seat) return goAlone()
    deps.onState('connecting')
    ask()
  }

  function leave() {
    clock.clearTimeout(timer)
    stream?.stop()
    seat?.leave()
    seat = stream = undefined
    leads = asked = false
  }

  function stop() {
    unsubscribe()
    leave()
  }

  function lead() {
    leads = true
    goAlone()
    tellPosition()
  }

  function goAlone() {
    clock.clearTimeout(timer)
    if (stream) return
    stream = createEventStream({
      ...deps,
      position,
      onHeard(event) {
        const message = { event, after: position.sequence }
        recent = event.type === 'replay.reset.required' ? [] : [...recent.slice(1 - recentAtMost), message]
        tell(message)
      },
      onBeat: tellPosition,
      onPosition: moveTo,
      onState(now) {
        state = now
        deps.onState(now)
        tellPosition()
      },
      onEnd(event) {
        stop()
        deps.onEnd(event)
      },
      onFailure(failure) {
        stop()
        deps.onFailure(failure)
      },
    })
    stream.start()
  }

  function tell(message: TabMessage) {
    if (leads) seat?.post(message)
  }

  function tellPosition() {
    tell({ at: position, state })
  }

  function moveTo(to: typeof position) {
    position = to
    deps.onPosition(to)
  }

  function onMessage(data: unknown) {
    const { ask: from, event, after = 0, at, state: told } = data as TabMessage
    if (from !== undefined) {
      for (const message of recent) if (message.event!.sequence > from) tell({ ...message, state })
      return tellPosition()
    }
    if (stream) return
    wait(deps.settings.heartbeatMs * 3)
    if (isOtherLog(event?.id ?? at?.lastEventId)) return goAlone()
    if (event) return follow(event, after, told !== undefined)
    if (told) deps.onState(told)
    if (!at || at.sequence <= position.sequence) asked = false
    else if (asked) goAlone()
    else ask()
  }

  function follow(event: StreamEvent, after: number, late: boolean) {
    if (terminalEvents.includes(event.type)) {
      stop()
      deps.onEnd(event.type as SessionEnd)
    } else if (event.type === 'replay.reset.required') {
      goAlone()
    } else if (after > position.sequence) {
      if (!asked) ask()
    } else if (event.sequence > position.sequence) {
      // Who typed a while ago is no news.
      if (!late || !event.type.startsWith('typing.')) deps.onEvent(event)
      moveTo({ lastEventId: event.id, sequence: event.sequence })
    }
  }

  function ask() {
    asked = true
    seat?.post({ ask: position.sequence })
    wait(answerWithinMs)
  }

  /** Waits for the leader to say something. */
  function wait(ms: number) {
    clock.clearTimeout(timer)
    timer = clock.setTimeout(goAlone, ms)
  }

  function isOtherLog(id: string | undefined) {
    const { lastEventId } = position
    return id !== undefined && lastEventId !== undefined && epochOf(id) !== epochOf(lastEventId)
  }

  function onLifecycle(signal: LifecycleSignal) {
    // A page with a request, a lock or a channel is not kept for the back button, so all rests until the page is back.
    if (signal === 'pagehide') leave()
    else if (signal === 'pageshow' && !seat && !stream) join()
    else if (signal !== 'offline' && seat && !stream) ask()
  }
}

function epochOf(id: string): string {
  return id.slice(0, id.lastIndexOf('-'))
}
