import type { WidgetMessage } from '../../client/types.ts'

const groupWithinMs = 5 * 60_000

/** A message and how the message log displays it. */
export interface PlacedMessage {
  message: WidgetMessage
  /**
   * True for the first of several consecutive messages of one author. This message shows the
   * author's name.
   */
  startsGroup: boolean
  /**
   * True for the last of several consecutive messages of one author. This message shows the avatar
   * and the time.
   */
  endsGroup: boolean
  /** True for the first message of a day. This message shows the date. */
  startsDay: boolean
  /** True for the first message that was unread when the panel opened. */
  startsNew: boolean
  /** True for the visitor's newest accepted message. This message shows its delivery state. */
  showsState: boolean
  /** True for the newest message. A bot's message shows its quick replies. */
  isLast: boolean
}

/**
 * Groups consecutive messages by author and day, and decides which message shows its delivery
 * state.
 */
export function layOut(messages: readonly WidgetMessage[], firstNewKey?: string): PlacedMessage[] {
  const newestAccepted = messages.findLast((one) => one.author.kind === 'visitor' && one.messageId)
  return messages.map((message, index) => {
    const startsDay = dayOf(message) !== dayOf(messages[index - 1])
    const next = messages[index + 1]
    return {
      message,
      startsDay,
      startsNew: message.key === firstNewKey,
      startsGroup: startsDay || message.key === firstNewKey || !isSameGroup(messages[index - 1], message),
      endsGroup: !next || next.key === firstNewKey || dayOf(next) !== dayOf(message) || !isSameGroup(message, next),
      isLast: !next,
      showsState: message === newestAccepted || (message.author.kind === 'visitor' && !message.messageId),
    }
  })
}

function isSameGroup(before: WidgetMessage | undefined, after: WidgetMessage): boolean {
  if (!before) return false
  const sameAuthor = before.author.kind === after.author.kind && before.author.displayName === after.author.displayName
  return sameAuthor && Date.parse(after.createdAt) - Date.parse(before.createdAt) < groupWithinMs
}

function dayOf(message: WidgetMessage | undefined): string | undefined {
  return message && new Date(message.createdAt).toDateString()
}
