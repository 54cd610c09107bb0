import { type Availability, defaultAvailability, type Installation } from '../workspaces/model.ts'
import { type OpeningState, openingState } from '../workspaces/opening-hours.ts'
import type { OperatorPresence } from './operator-presence.ts'

/** Whether visitors can reach somebody now. */
export interface AvailabilityState {
  online: boolean
  /**
   * Time of the next change that the opening hours cause. Absent if there is no such change, if the
   * mode overrides the hours, or if a required operator is missing.
   */
  nextChangeAt?: Date
}

export type AvailabilityOf = (
  installation: Pick<Installation, 'workspaceId' | 'availability'>,
) => Promise<AvailabilityState>

/** Returns the settings with the defaults of absent fields. */
export function availabilityOf({ availability }: Pick<Installation, 'availability'>): Availability {
  return { ...defaultAvailability, ...availability }
}

/** Decides whether installations are online: by override, opening hours and presence of operators. */
export function createAvailabilityOf(dependencies: {
  presence: Pick<OperatorPresence, 'isAttended'>
  now: () => number
}): AvailabilityOf {
  const { presence, now } = dependencies
  /** Current state of the opening hours, by the settings object of a cached installation. */
  const known = new WeakMap<object, OpeningState & { since: number }>()

  function openingStateOf(key: object, availability: Availability): OpeningState {
    const at = now()
    const state = known.get(key)
    if (state && state.since <= at && at < (state.nextChangeAt ?? Number.POSITIVE_INFINITY)) return state
    const fresh = { ...openingState(availability, at), since: at }
    known.set(key, fresh)
    return fresh
  }

  return async (installation) => {
    if (!installation.availability) return { online: true }
    const availability = availabilityOf(installation)
    const { mode, requiresOperator } = availability
    if (mode !== 'auto') return { online: mode === 'online' }
    const { isOpen, nextChangeAt } = openingStateOf(installation.availability, availability)
    const change = nextChangeAt === undefined ? {} : { nextChangeAt: new Date(nextChangeAt) }
    if (!isOpen || !requiresOperator) return { online: isOpen, ...change }
    // Without an operator, the installation is away before and after closing time. So it has no
    // next change.
    return (await presence.isAttended(installation.workspaceId)) ? { online: true, ...change } : { online: false }
  }
}
