/**
 * State of the session of a page.
 *
 * - `none`: not started.
 * - `creating`: the service is asked for a new session.
 * - `live`: the grant is valid. `isTried` is true after an attempt to renew it.
 * - `expired-untried`: the grant has expired. Whatever needs a grant renews it.
 * - `expired-tried`: as before, after an attempt. The grant is renewed when the page becomes visible, the
 *   network returns or the visitor acts.
 * - `ended`: by the service, by a failure or by the page. It stays.
 */
export type SessionState =
  | { name: 'none' }
  | { name: 'creating' }
  | { name: 'ended' }
  | { name: 'live'; isTried: boolean }
  /** `expiredGrants` counts the grants in a row that had expired when they arrived. */
  | { name: 'expired-untried' | 'expired-tried'; expiredGrants: number }

export type SessionEvent =
  | 'create'
  | 'resume'
  | 'granted'
  | 'granted-expired'
  /** The clock or the service says that the grant has expired. */
  | 'expire'
  | 'try'
  /** The visitor acts, or the page or the network is back. */
  | 'act'
  | 'end'

/** Returns the state after an event. An event that has no meaning in a state changes nothing. */
export function nextState(state: SessionState, event: SessionEvent): SessionState {
  if (event === 'end' || state.name === 'ended') return { name: 'ended' }
  if (event === 'granted') return { name: 'live', isTried: false }
  // A repeated renewal may return a grant that has expired during a sleep. It is renewed once in a row.
  if (event === 'granted-expired') {
    const expiredGrants = 'expiredGrants' in state ? state.expiredGrants + 1 : 1
    return { name: expiredGrants > 1 ? 'expired-tried' : 'expired-untried', expiredGrants }
  }
  switch (state.name) {
    case 'none':
      if (event === 'create') return { name: 'creating' }
      return event === 'resume' ? { name: 'live', isTried: false } : state
    case 'creating':
      return state
    case 'live':
      if (event === 'expire') return { name: state.isTried ? 'expired-tried' : 'expired-untried', expiredGrants: 0 }
      return event === 'try' || event === 'act' ? { name: 'live', isTried: event === 'try' } : state
    default:
      if (event === 'try') return { ...state, name: 'expired-tried' }
      return event === 'act' ? { ...state, name: 'expired-untried' } : state
  }
}
