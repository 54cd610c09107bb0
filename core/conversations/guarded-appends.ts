import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError, unavailable } from '../errors.ts'
import type { EventDraft } from '../log/event-draft.ts'
import type { Appended, EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogEvent, OperationKey } from '../log-event.ts'

export interface Operation {
  conversationId: string
  operationKey: OperationKey
  inputHash: string
}

export interface GuardedAppends {
  /** Returns the event of an operation. Errors: IdempotencyConflict if its input was different. */
  eventOf(operation: Operation): Promise<LogEvent | undefined>
  /**
   * Appends an event, unless `check` returns a refusal. `check` must read the end of the log before
   * it reads the state that it checks. A repeat of the operation returns its first event, even if
   * `check` refuses now. Errors: the refusal, IdempotencyConflict, ServiceUnavailable.
   */
  append(
    draft: EventDraft & Operation,
    check: () => Promise<{ end: number; refusal?: ErrorCode | undefined }>,
  ): Promise<Appended>
}

/** How often an append is tried if other events of the conversation come first. */
export const maxTries = 100

/** Appends events that depend on a state. The log has no event between the state and the new event. */
export function createGuardedAppends(dependencies: {
  log: Pick<EventLog, 'appendAfter'>
  events: Pick<EventStore, 'findOperations'>
}): GuardedAppends {
  const { log, events } = dependencies

  async function eventOf({ conversationId, operationKey, inputHash }: Operation) {
    const [event] = await events.findOperations([{ conversationId, operationKey }])
    if (event && event.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    return event
  }

  return {
    eventOf,

    async append(draft, check) {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const { end, refusal } = await check()
        if (refusal !== undefined) {
          const event = await eventOf(draft)
          if (event) return { event, replayed: true }
          throw new ServiceError(refusal)
        }
        const sent = await log.appendAfter(end, draft)
        if (sent) return sent
      }
      throw unavailable()
    },
  }
}
