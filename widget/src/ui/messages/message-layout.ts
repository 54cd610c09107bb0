import type { WidgetMessage } from '../../vocabulary/types.ts'

const groupWithinMs = 5 * 60_000

export interface PlacedMessage {
  message: WidgetMessage
  /** The first of several messages of one author. It shows the author's name. */
  startsGroup: boolean
  /** The last of several messages of one author. It shows the avatar and the time. */
  endsGroup: boolean
  startsDay: boolean
  /** True for the first message that was unread when the panel opened. */
  startsNew: boolean
  /** True for the visitor's newest accepted message. This message shows its delivery state. */
  showsState: boolean
  /** True for the newest message. A bot's message shows its quick replies. */
  isLast: boolean
}

export function layOut(messages: readonly WidgetMessage[], firstNewKey?: string): PlacedMessage[] {
  const newestAccepted = messages.findLast((one) => one.author.kind === 'visitor' && one.messageId)
  let before: { message: WidgetMessage; day: string } | undefined
  const placed = messages.map((message): PlacedMessage => {
    const day = new Date(message.createdAt).toDateString()
    const startsDay = day !== before?.day
    const startsNew = message.key === firstNewKey
    const startsGroup = startsDay || startsNew || !isSameGroup(before?.message, message)
    const showsState = message === newestAccepted || (message.author.kind === 'visitor' && !message.messageId)
    before = { message, day }
    return {
      message,
      startsDay,
      startsNew,
      startsGroup,
      endsGroup: true,
      showsState,
      isLast: message === messages.at(-1),
    }
  })
  // Old libraries replace `entries` of arrays.
  placed.forEach((one, index) => {
    one.endsGroup = placed[index + 1]?.startsGroup ?? true
  })
  return placed
}

function isSameGroup(before: WidgetMessage | undefined, after: WidgetMessage) {
  if (!before) return false
  const sameAuthor = before.author.kind === after.author.kind && before.author.displayName === after.author.displayName
  return sameAuthor && Date.parse(after.createdAt) - Date.parse(before.createdAt) < groupWithinMs
}
