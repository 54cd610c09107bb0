import { linkify } from '../../../../browser/chat/linkify.ts'
import { isTeam } from '../../../../browser/chat/messages.ts'
import { pageLifecycle } from '../../../../browser/page-lifecycle.ts'
import type { WidgetMessage } from '../../vocabulary/types.ts'
import { authorName, avatarOf } from '../elements/author.ts'
import { alertIcon, box, button, element, hasFocus, icon, tickIcon } from '../elements/elements.ts'
import type { WidgetTexts } from '../languages/en.ts'
import type { PanelParts } from '../panel/panel-parts.ts'
import { cardType } from './activity-lines.ts'
import type { PlacedMessage } from './message-layout.ts'

/** A message of one or a few emoji, which is shown large. */
const emojiOnly = /^(?:[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}]|\u200d|\ufe0f){1,12}$/u

export interface RowContext extends PanelParts {
  isHeld(): boolean
  onReply(text: string): void
}

export type MessageRow = ReturnType<typeof createMessageRow>

/**
 * Creates the row of a message. Updates change the text only of a message that grows. Screen readers
 * announce each row once; the row of a growing message is replaced when it ends. `row` is an empty element.
 */
export function createMessageRow(
  context: RowContext,
  { message: { key, author, body, contentType, redactedAt, growing, ended, quickReplies = [] } }: PlacedMessage,
  row = element('div'),
) {
  const { texts } = context
  const name = authorName(author, texts)
  const bubbleId = `message-${key}`
  const day = element('div', { class: 'day', 'aria-live': 'off' })
  const label = element('div', { class: 'name', 'aria-hidden': 'true' })
  const spoken = element('span', { class: 'visually-hidden' }, `${name}: `)
  // The text direction depends on the message. The bubble has the direction of the user interface.
  const written = redactedAt
    ? element('div', {}, texts.withdrawn)
    : element('div', { dir: 'auto' }, ...(author.kind === 'system' ? [body] : bodyNodes(body, texts)))
  const end = ended && !redactedAt ? [box('ended', texts.answerEnds[ended])] : []
  const isCard = contentType === cardType
  const said = author.kind === 'system' ? [...(isCard ? [icon(tickIcon)] : []), written] : [spoken, written, ...end]
  const bubble = element(
    'div',
    {
      class: 'bubble',
      id: bubbleId,
      'data-emoji': !growing && emojiOnly.test(body),
      'data-card': isCard,
      'data-withdrawn': redactedAt,
    },
    ...said,
  )
  const meta = element('div', { class: 'meta', 'aria-live': 'off' })
  const avatar = isTeam(author) ? [avatarOf(author, texts.agent)] : []
  const replies = box('replies', ...replyButtons(quickReplies, context.onReply))
  const line = box('line', ...avatar, box('column', label, bubble, meta))
  const kind = isTeam(author) ? 'agent' : author.kind
  row.className = 'row'
  row.dataset.author = kind
  row.append(day, line, replies)
  let shown: Partial<PlacedMessage> = {}

  return { element: row, update }

  function update(placed: PlacedMessage) {
    const { message, startsDay, startsNew, startsGroup, endsGroup, showsState, isLast } = placed
    // The text of an unsent message also depends on consent and network, and that of a day on the date.
    const isSame =
      message.messageId &&
      !startsDay &&
      Object.entries(placed).every(([name, value]) => shown[name as keyof PlacedMessage] === value)
    if (isSame) return
    if (growing && shown.message?.body !== message.body) written.replaceChildren(...bodyNodes(message.body, texts))
    shown = placed
    row.toggleAttribute('data-starts-group', startsGroup)
    row.toggleAttribute('data-ends-group', endsGroup)
    row.dataset.state = message.deliveryStatus
    day.hidden = !startsDay && !startsNew
    day.toggleAttribute('data-new', startsNew)
    const dayParts = [startsDay && context.dates.day(message.createdAt), startsNew && texts.newMessages]
    day.textContent = dayParts.filter(Boolean).join(' · ')
    label.hidden = !startsGroup || !isTeam(author)
    label.replaceChildren(...(label.hidden ? [] : [element('bdi', {}, name)]))
    replies.hidden = !isLast || quickReplies.length === 0
    const parts = metaParts(message, showsState, endsGroup && replies.hidden)
    const hadFocus = hasFocus(meta) || (replies.hidden && hasFocus(replies))
    meta.hidden = parts.length === 0
    meta.replaceChildren(...parts)
    if (hadFocus)
      (meta.querySelector('button') ?? row.closest<HTMLElement>('.scroller'))?.focus({ preventScroll: true })
  }

  function metaParts(message: WidgetMessage, showsState: boolean, endsGroup: boolean) {
    if (author.kind === 'visitor' && message.deliveryStatus === 'failed') return failedParts(message)
    const state = showsState && author.kind === 'visitor' ? statusText(message, context) : ''
    const time = message.messageId && (endsGroup || state) ? context.dates.time(message.createdAt) : ''
    const text = [time, state].filter(Boolean).join(' · ')
    return text ? [element('bdi', {}, text)] : []
  }

  function failedParts({ error, messageId, clientOperationId, failureVersion }: WidgetMessage) {
    const failure = element('span', { class: 'failure' }, icon(alertIcon), texts.notSent)
    if (messageId || !clientOperationId || !error?.recoverable) return [failure]
    const retry = () => context.client.retryMessage(clientOperationId, { failureVersion })
    return [failure, button('retry', texts.retry, retry, { 'aria-describedby': bubbleId })]
  }
}

export const replyButtons = (texts: string[], onReply: (text: string) => void) =>
  texts.map((text) => button('reply', text, () => onReply(text), { dir: 'auto' }))

function bodyNodes(body: string, texts: WidgetTexts) {
  return linkify(body).map(({ text, href }) => {
    if (!href) return document.createTextNode(text)
    if (!href.startsWith('http')) return element('a', { href }, text)
    // A label, because hidden words would be copied with the address.
    const label = `${text} (${texts.opensInNewTab})`
    return element('a', { href, target: '_blank', rel: 'noopener noreferrer', 'aria-label': label }, text)
  })
}

/** Says “sent” only after the service has accepted the message. */
function statusText({ deliveryStatus }: WidgetMessage, { texts, isHeld }: RowContext) {
  if (deliveryStatus === 'pending' && isHeld()) return texts.waitingForConsent
  if ((deliveryStatus === 'pending' || deliveryStatus === 'retrying') && !pageLifecycle.isOnline())
    return texts.waitingForNetwork
  if (deliveryStatus === 'pending') return texts.sending
  if (deliveryStatus === 'queued' || deliveryStatus === 'sent') return texts.sent
  return { retrying: texts.retrying, delivered: texts.delivered, read: texts.read, failed: texts.notSent }[
    deliveryStatus
  ]
}
