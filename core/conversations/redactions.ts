import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import type { SearchIndex } from '../search/search-index.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { GrowingMessages } from './growing-messages.ts'
import type { MessageStateStore } from './message-state-store.ts'
import { isRedaction, withoutText } from './model.ts'

export interface Redactions {
  /**
   * Removes the text of a message for all readers, and from what is sent to destinations. A caller may
   * withdraw the agents' messages that they sent, and any message with `anyAuthor`. Errors:
   * NotFound if the conversation or the message does not exist, PermissionDenied,
   * ServiceUnavailable.
   */
  redact(
    request: { conversationId: string; sequence: number },
    caller: { workspaceId?: string; subject: string; anyAuthor: boolean },
  ): Promise<LogEvent>
  /** Applies the events that a dead process wrote but did not apply to their messages. */
  reconcile(abandoned: LogEvent[]): Promise<void>
}

/**
 * Withdraws messages. First the event `message.redacted` is appended. Then the text is removed from
 * the event of the message, from the search and from deliveries. Readers may see the appended event or
 * the removal of the text first. Each step can be repeated, so a repeated call completes what a dead
 * process began.
 */
export function createRedactions(dependencies: {
  log: EventLog
  events: Pick<EventStore, 'at'>
  store: Pick<MessageStateStore, 'redact' | 'markApplied'>
  searchIndex: Pick<SearchIndex, 'remove'>
  withdrawFromDeliveries: (redactions: LogEvent[]) => Promise<void>
  growing: Pick<GrowingMessages, 'interrupt'>
  conversationAccess: ConversationAccess
}): Redactions {
  const { log, events, store, searchIndex, withdrawFromDeliveries, growing, conversationAccess } = dependencies

  async function apply(redactions: LogEvent[]) {
    await store.redact(redactions)
    await searchIndex.remove(redactions)
    await withdrawFromDeliveries(redactions)
    await store.markApplied(redactions)
  }

  return {
    async redact({ conversationId, sequence }, { workspaceId, subject, anyAuthor }) {
      await conversationAccess.find(conversationId, workspaceId)
      const [found] = await events.at([{ conversationId, sequence }])
      if (!found?.message) throw new ServiceError(ErrorCode.NOT_FOUND)
      const { messageId } = found.message
      if (found.sentBy !== subject && !anyAuthor) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      if (found.growth) await growing.interrupt(found)
      const { event } = await log.append({
        conversationId,
        type: 'message.redacted',
        operationKey: operationKeys.redaction(messageId),
        inputHash: messageId,
        data: { messageId },
        messageSequence: sequence,
        unapplied: true,
      })
      await apply([event])
      return withoutText(found, event.occurredAt)
    },

    reconcile: (abandoned) => apply(abandoned.filter(isRedaction)),
  }
}
