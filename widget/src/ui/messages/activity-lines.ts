import type { Activity } from '../../client/feature-types.ts'
import type { WidgetMessage } from '../../client/types.ts'
import type { WidgetTexts } from '../languages/texts.ts'

/**
 * Returns the messages in order, with an additional line for each conversation event that is not a
 * message.
 */
export function withActivity(
  messages: readonly WidgetMessage[],
  activity: readonly Activity[],
  { texts, hasOlder }: { texts: WidgetTexts; hasOlder: boolean },
): readonly WidgetMessage[] {
  const lines = activity.flatMap((one) => {
    const body = textOf(one, texts)
    return body ? [{ ...systemMessage, key: one.key, body, sequence: one.sequence, createdAt: one.at }] : []
  })
  // Omit lines that are older than the oldest loaded message. They appear when older messages are
  // loaded.
  const oldest = hasOlder ? (messages.find(({ sequence }) => sequence !== undefined)?.sequence ?? 0) : 0
  const shown = lines.filter(({ sequence }) => sequence >= oldest)
  const place = ({ sequence }: WidgetMessage) => sequence ?? Number.POSITIVE_INFINITY
  const merged: WidgetMessage[] = [...messages]
  for (const line of shown) {
    const after = merged.findLastIndex((one) => place(one) <= line.sequence)
    merged.splice(after + 1, 0, line)
  }
  return merged
}

const systemMessage = {
  author: { kind: 'system' as const },
  contentType: 'text',
  deliveryStatus: 'sent' as const,
}

function textOf({ type, agentName = '' }: Activity, texts: WidgetTexts): string | undefined {
  if (type === 'agent.assigned') return texts.agentAssigned(agentName)
  if (type === 'agent.unassigned') return texts.agentUnassigned(agentName)
  if (type === 'conversation.closed') return texts.conversationClosed
  if (type === 'conversation.reopened') return texts.conversationReopened
  if (type === 'form.submitted') return texts.formSubmitted
  if (type === 'request.resolved') return texts.requestResolved
  const [kind, outcome] = type.split('.') as [
    'navigation' | 'screenshot',
    keyof WidgetTexts['requestOutcomes']['navigation'],
  ]
  return texts.requestOutcomes[kind][outcome]
}
