import { type Core, perCore } from '../core.ts'
import { type Availability, defaultAvailability, type Installation } from '../workspaces/model.ts'
import { type OpeningState, openingState } from '../workspaces/opening-hours.ts'
import { operatorPresenceOf } from './operator-presence.ts'

/** Whether visitors can reach somebody now. */
export interface AvailabilityState {
  online: boolean
  /** Time of the next change by the opening hours. Absent if it would not change `online`. */
  nextChangeAt?: Date
}

/** Returns the settings with the defaults of absent fields. */
export const availabilityOf = ({ availability }: Pick<Installation, 'availability'>): Availability => ({
  ...defaultAvailability,
  ...availability,
})

/** Current state of the opening hours, by the settings object of a cached installation. */
const knownOf = perCore((_) => new WeakMap<object, OpeningState & { since: number }>())

function openingStateOf(core: Core, key: object, availability: Availability): OpeningState {
  const at = core.now()
  const known = knownOf(core)
  const state = known.get(key)
  if (state && state.since <= at && at < (state.nextChangeAt ?? Number.POSITIVE_INFINITY)) return state
  const fresh = { ...openingState(availability, at), since: at }
  known.set(key, fresh)
  return fresh
}

/** Decides from the mode, the opening hours and the presence of operators. */
export async function readAvailability(
  core: Core,
  installation: Pick<Installation, 'workspaceId' | 'availability'>,
): Promise<AvailabilityState> {
  if (!installation.availability) return { online: true }
  const availability = availabilityOf(installation)
  const { mode, requiresOperator } = availability
  if (mode !== 'auto') return { online: mode === 'online' }
  const { isOpen, nextChangeAt } = openingStateOf(core, installation.availability, availability)
  const change = nextChangeAt === undefined ? {} : { nextChangeAt: new Date(nextChangeAt) }
  if (!isOpen || !requiresOperator) return { online: isOpen, ...change }
  // Without an operator, the installation is away before and after closing time.
  const isAttended = await operatorPresenceOf(core).isAttended(installation.workspaceId)
  return isAttended ? { online: true, ...change } : { online: false }
}
