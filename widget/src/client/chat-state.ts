import { sessionEndOf } from '../vocabulary/errors.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { ConnectionState, ReplayReset, SessionEnd } from '../vocabulary/types.ts'

type ChatEnd = Readonly<{ event?: SessionEnd; code: string }>

/** Stores the connection state and why the chat has ended. That state changes only when it is reset. */
export function createChatState(emit: Emitter['emit']) {
  let connection: ConnectionState = 'idle'
  let end: ChatEnd | undefined
  let canStartNew = false

  return {
    connection: () => connection,

    setConnection,

    /** Returns the reason why the chat has ended, or undefined if the chat has not ended. */
    end: () => end,

    /** Returns true if the chat has ended and the visitor may start a new session. */
    canStartNew: () => !!end && canStartNew,

    /**
     * Ends the chat.
     *
     * @param canStart true if the visitor may start another session
     * @param about further fields of the event
     */
    setEnd(code: string, canStart: boolean, about: Partial<ReplayReset> = {}) {
      const event = sessionEndOf(code)
      end = { event, code }
      canStartNew = canStart
      setConnection('ended')
      if (event) emit(event, { code, ...about })
    },

    /** Sets the state of a chat that starts again or was stopped. It no longer counts as ended. */
    reset(state: 'idle' | 'connecting') {
      end = undefined
      setConnection(state)
    },
  }

  function setConnection(state: ConnectionState) {
    if (state === connection || (end && state !== 'ended')) return
    connection = state
    emit('connection.changed', { state })
  }
}
