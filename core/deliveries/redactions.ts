import { findConversation } from '../conversations/conversation-access.ts'
import { interruptGrowth } from '../conversations/growing-messages.ts'
import { markApplied } from '../conversations/message-states.ts'
import { withoutText } from '../conversations/model.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { logOf } from '../log/event-log.ts'
import { eventsOf } from '../log/event-store.ts'
import { withdrawal } from '../log/message-model.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { withdrawFromDeliveries } from './sources.ts'

/**
 * Removes the text of a message for all readers, and from what is sent to destinations. A caller may
 * withdraw the agents' messages that they sent, and any message with `anyAuthor`. Errors: NotFound,
 * PermissionDenied, ServiceUnavailable.
 *
 * First the event `message.redacted` is appended, then it is applied. Readers may see either first. A
 * repeated call completes what a dead process began.
 */
export async function redactMessage(
  core: Core,
  { conversationId, sequence }: { conversationId: string; sequence: number },
  { workspaceId, subject, anyAuthor }: { workspaceId?: string; subject: string; anyAuthor: boolean },
): Promise<LogEvent> {
  await findConversation(core, conversationId, workspaceId)
  const [found] = await eventsOf(core).at([{ conversationId, sequence }])
  if (!found?.message) throw new ServiceError('NotFound')
  const { messageId } = found.message
  if (found.sentBy !== subject && !anyAuthor) throw new ServiceError('PermissionDenied')
  if (found.growth) await interruptGrowth(core, found)
  const { event } = await logOf(core).append({
    conversationId,
    type: 'message.redacted',
    operationKey: operationKeys.redaction(messageId),
    inputHash: messageId,
    data: { messageId },
    messageSequence: sequence,
    unapplied: true,
  })
  await applyRedactions(core, [event])
  return withoutText(found, event.occurredAt)
}

/** Removes the texts of withdrawn messages everywhere. Each step can be repeated. */
export async function applyRedactions(core: Core, redactions: LogEvent[]) {
  if (redactions.length > 0)
    await core.db.events.bulkWrite(
      redactions.map(({ conversationId, messageSequence, occurredAt }) => ({
        updateOne: {
          filter: { conversationId, sequence: messageSequence!, message: { $exists: true } },
          update: withdrawal(occurredAt),
        },
      })),
    )
  await searchIndexOf(core).remove(redactions)
  await withdrawFromDeliveries(core, redactions)
  await markApplied(core, redactions)
}
