import type { Activity, WidgetMessage } from '../../vocabulary/types.ts'
import type { WidgetTexts } from '../languages/en.ts'

interface Context {
  texts: WidgetTexts
  hasOlder: boolean
  /** Time from which operators answer. Undefined while they answer, or if it is unknown. */
  answersFrom?: string
}

/** Adds a line for each other event, but none for the closing of a chat that is open again. */
export function withActivity(
  messages: readonly WidgetMessage[],
  activity: readonly Activity[],
  { hasOlder, ...context }: Context,
) {
  const reopenedAt = activity.findLast(({ type }) => type === 'conversation.reopened')?.sequence ?? 0
  const lines = activity.flatMap((one) => {
    if (one.type === 'conversation.closed' && one.sequence < reopenedAt) return []
    const body = textOf(one, context)
    const contentType = one.type === 'form.submitted' ? cardType : 'text'
    const line = { ...systemMessage, contentType, key: one.key, body, sequence: one.sequence, createdAt: one.at }
    return body ? [line as WidgetMessage & { sequence: number; body: string }] : []
  })
  // Lines that are older than the oldest loaded message appear when older messages are loaded.
  const oldest = hasOlder ? (messages.find(({ sequence }) => sequence !== undefined)?.sequence ?? 0) : 0
  const shown: WidgetMessage[] = lines.filter(({ sequence }) => sequence >= oldest)
  for (const { key, author, body, sequence, createdAt } of messages)
    if (sequence && author.kind === 'visitor' && body === context.texts.talkToPerson) {
      const line = { ...systemMessage, contentType: 'text' as const, body: context.texts.askingColleague }
      shown.push({ ...line, key: `${key} asked`, sequence, createdAt })
    }
  const place = ({ sequence }: WidgetMessage) => sequence ?? Number.POSITIVE_INFINITY
  const merged = [...messages]
  for (const line of shown) {
    const after = merged.findLastIndex((one) => place(one) <= place(line))
    merged.splice(after + 1, 0, line)
  }
  return merged
}

/** Content type of a line that is shown as a card with a tick. */
export const cardType = 'card'

const systemMessage = { author: { kind: 'system' }, deliveryStatus: 'sent' } as const

function textOf(
  { type, agentName = '', address }: Activity,
  { texts, answersFrom }: Omit<Context, 'hasOlder'>,
): string | undefined {
  if (type === 'agent.assigned') return texts.agentAssigned(agentName)
  if (type === 'agent.unassigned') return texts.agentUnassigned(agentName)
  if (type === 'conversation.closed') return texts.conversationClosed
  if (type === 'conversation.reopened') return texts.conversationReopened
  if (type === 'form.submitted') {
    const answers = answersFrom && texts.answersFrom(answersFrom)
    return [texts.formSubmitted, address, answers].filter(Boolean).join('\n')
  }
  if (type === 'request.resolved') return texts.requestResolved
  const [kind, outcome] = type.split('.') as [
    'navigation' | 'screenshot',
    keyof WidgetTexts['requestOutcomes']['navigation'],
  ]
  return texts.requestOutcomes[kind][outcome]
}
