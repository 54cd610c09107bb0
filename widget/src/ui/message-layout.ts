import type { WidgetMessage } from '../types.ts'

const groupWithinMs = 5 * 60_000

/** A message with its place among the others. */
export interface PlacedMessage {
  message: WidgetMessage
  /** First of a run of messages of one author: shows the name. */
  startsGroup: boolean
  /** Last of its run: shows the avatar and the time. */
  endsGroup: boolean
  /** First of its day: a line with the date stands before it. */
  startsDay: boolean
  /** The visitor's newest accepted message, which shows its delivery status. */
  showsState: boolean
}

/** Arranges messages in runs of one author, days and the one state line under the visitor's newest message. */
export function layOut(messages: readonly WidgetMessage[]): PlacedMessage[] {
  const newestAccepted = messages.findLast((one) => one.author.kind === 'visitor' && one.messageId)
  return messages.map((message, index) => {
    const startsDay = dayOf(message) !== dayOf(messages[index - 1])
    const next = messages[index + 1]
    return {
      message,
      startsDay,
      startsGroup: startsDay || !isSameGroup(messages[index - 1], message),
      endsGroup: !next || dayOf(next) !== dayOf(message) || !isSameGroup(message, next),
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
