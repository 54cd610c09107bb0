import type { PublicErrorCode } from '../../contract/errors.ts'
import type { Core } from '../core.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { type Appended, type EventDraft, logOf } from '../log/event-log.ts'
import { eventsOf } from '../log/event-store.ts'
import { logHeadsOf } from '../log/log-heads.ts'
import type { LogEnd, LogEvent, OperationKey } from '../log-event.ts'

export interface Operation {
  conversationId: string
  operationKey: OperationKey
  inputHash: string
}

/** How often an append is tried if other events of the conversation come first. */
export const maxTries = 100

/** Reads the stored end of a log. Afterwards the log appends after this end or a later one. */
export async function readEnd(core: Core, conversationId: string): Promise<LogEnd> {
  const events = eventsOf(core)
  const ends = await logHeadsOf(core).learn([conversationId], (ids) => events.ends(ids, { committed: true }))
  return ends.get(conversationId) ?? { sequence: 0, closed: false }
}

/** Returns the event of an operation. Errors: IdempotencyConflict if the operation had a different input. */
export async function eventOfOperation(
  core: Core,
  { conversationId, operationKey, inputHash }: Operation,
): Promise<LogEvent | undefined> {
  const [event] = await eventsOf(core).findOperations([{ conversationId, operationKey }])
  if (event && event.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
  return event
}

/**
 * Appends an event that depends on a state, unless `check` returns a refusal. `check` must read the end
 * of the log before it reads the state that it checks, so that the log has no event between the state
 * and the new event. A repeat of the operation returns its first event, even if `check` refuses now.
 * Errors: the refusal, IdempotencyConflict, ServiceUnavailable.
 */
export async function appendGuarded(
  core: Core,
  draft: EventDraft & Operation,
  check: () => Promise<{ end: number; refusal?: PublicErrorCode | undefined }>,
): Promise<Appended> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { end, refusal } = await check()
    if (refusal !== undefined) {
      const event = await eventOfOperation(core, draft)
      if (event) return { event, replayed: true }
      throw new ServiceError(refusal)
    }
    const sent = await logOf(core).appendAfter(end, draft)
    if (sent) return sent
  }
  throw unavailable()
}
