import type { TimerId } from '../../../browser/platform.ts'
import type { Activity, AgentRequest } from '../vocabulary/types.ts'
import type { PartsWithPresence } from './presence.ts'

const handledAtMost = 50

/**
 * The agents' requests that have not ended. They are stored, so that the visitor's next page
 * continues with them. Requests that the visitor does not answer in time expire. `onEnd` is called when a
 * request has ended.
 */
export function createPendingRequests(parts: PartsWithPresence, onEnd: (id: string) => void) {
  const { emitter, records, presence } = parts
  const { clock } = parts.platform
  let timer: TimerId

  return {
    find,

    /** Returns true if the request is pending or was handled earlier. */
    isKnown: (id: string) => records.current().handled.includes(id) || find(id) !== undefined,

    add(request: AgentRequest) {
      records.change({ requests: [...all(), request] })
      scheduleExpiry()
      if (request.kind === 'navigation') emitter.emit('navigation.requested', { request })
      else emitter.emit('screenshot.requested', { request })
      emitChange()
    },

    /** Changes a request. Does nothing if the request has ended. */
    change({ id }: AgentRequest, changes: Partial<AgentRequest>) {
      if (!find(id)) return
      records.change({ requests: all().map((one) => (one.id === id ? { ...one, ...changes } : one)) })
      scheduleExpiry()
      emitChange()
    },

    end,

    /** Records that the request was handled, so that a repeated event does not show it again. */
    markHandled,

    expire,

    emitChange,

    stop: () => clock.clearTimeout(timer),
  }

  function all() {
    return records.current().requests
  }

  function find(id: string): AgentRequest | undefined {
    return all().find((one) => one.id === id)
  }

  /** Removes a request and adds the activity `outcome`, if given. */
  function end({ id }: AgentRequest, outcome?: Activity['type']) {
    // The request may have ended already, or belong to an earlier visitor.
    if (!find(id)) return
    records.change({ requests: all().filter((one) => one.id !== id) })
    markHandled(id)
    onEnd(id)
    scheduleExpiry()
    if (outcome) presence.add(outcome)
    emitChange()
  }

  function markHandled(id: string) {
    const { handled } = records.current()
    records.change({ handled: [...handled.filter((one) => one !== id), id].slice(-handledAtMost) })
  }

  function scheduleExpiry() {
    clock.clearTimeout(timer)
    const unanswered = all().filter(({ state }) => state !== 'accepted')
    if (unanswered.length === 0) return
    const nextMs = Math.min(...unanswered.map(({ expiresAtMs }) => expiresAtMs))
    timer = clock.setTimeout(expire, Math.max(0, nextMs - clock.now()))
  }

  function expire() {
    for (const request of all()) {
      const isExpired = request.state !== 'accepted' && request.expiresAtMs <= clock.now()
      if (isExpired) end(request, `${request.kind}.expired`)
    }
    scheduleExpiry()
  }

  function emitChange() {
    emitter.emit('requests.changed', { requests: all() })
  }
}
