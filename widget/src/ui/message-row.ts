import type { MessageAuthor, WidgetMessage } from '../types.ts'
import { element, icon } from './elements.ts'
import { alertIcon } from './icons.ts'
import { initialsOf } from './initials.ts'
import { linkify, safeHref } from './linkify.ts'
import type { PlacedMessage } from './message-layout.ts'
import type { WidgetTexts } from './texts.ts'

export interface RowContext {
  texts: WidgetTexts
  locale: string | undefined
  now: () => Date
  /** False where the browser is sure that there is no network. */
  isOnline(): boolean
  onRetry(clientOperationId: string): void
}

export interface MessageRow {
  element: HTMLElement
  update(placed: PlacedMessage): void
}

/** One message. Updates change the parts around the text, never the text, so that screen readers hear it once. */
export function createMessageRow(first: PlacedMessage, context: RowContext): MessageRow {
  const { texts } = context
  const { author, body } = first.message
  const name = author.displayName || (author.kind === 'visitor' ? texts.you : texts.agent)
  const bubbleId = `message-${first.message.key}`
  const day = element('div', { class: 'day' })
  const label = element('div', { class: 'name' })
  const spoken = element('span', { class: 'visually-hidden' }, `${name}: `)
  // The direction is the text's own; the bubble's corners follow the page's.
  const written = element('div', { dir: 'auto' }, ...bodyNodes(body, texts))
  const bubble = element(
    'div',
    { class: 'bubble', id: bubbleId },
    ...(author.kind === 'system' ? [] : [spoken]),
    written,
  )
  const meta = element('div', { class: 'meta', 'aria-live': 'off' })
  const avatar = author.kind === 'agent' ? avatarOf(author, name) : undefined
  const column = element('div', { class: 'column' }, label, bubble, meta)
  const line = element('div', { class: 'line' }, ...(avatar ? [avatar] : []), column)
  const row = element('div', { class: 'row', 'data-author': author.kind }, day, line)
  update(first)

  return { element: row, update }

  function update({ message, startsDay, startsGroup, endsGroup, showsState }: PlacedMessage) {
    row.toggleAttribute('data-starts-group', startsGroup)
    row.toggleAttribute('data-ends-group', endsGroup)
    row.dataset.state = message.state
    day.hidden = !startsDay
    if (startsDay) day.textContent = dayName(new Date(message.createdAt), context)
    label.hidden = !startsGroup || author.kind !== 'agent'
    label.replaceChildren(...(label.hidden ? [] : [element('bdi', {}, name)]))
    const parts = metaParts(message, showsState, endsGroup)
    meta.hidden = parts.length === 0
    meta.replaceChildren(...parts)
  }

  function metaParts(message: WidgetMessage, showsState: boolean, endsGroup: boolean): Node[] {
    if (author.kind === 'visitor' && message.state === 'failed') return failedParts(message)
    const state = showsState && author.kind === 'visitor' ? stateText(message, context) : ''
    const time = message.messageId && (endsGroup || state) ? timeOf(message, context.locale) : ''
    const text = [time, state].filter(Boolean).join(' · ')
    return text ? [element('bdi', {}, text)] : []
  }

  function failedParts({ error, messageId, clientOperationId }: WidgetMessage): Node[] {
    const told = element('span', { class: 'failure' }, icon(alertIcon), texts.notSent)
    if (messageId || !clientOperationId || !error?.recoverable) return [told]
    const retry = element('button', { class: 'retry', type: 'button', 'aria-describedby': bubbleId }, texts.retry)
    retry.addEventListener('click', () => context.onRetry(clientOperationId))
    return [told, retry]
  }
}

function bodyNodes(body: string, texts: WidgetTexts): Node[] {
  return linkify(body).map(({ text, href }) => {
    if (!href) return document.createTextNode(text)
    const hint = element('span', { class: 'visually-hidden' }, ` (${texts.opensInNewTab})`)
    return element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, text, hint)
  })
}

function avatarOf({ avatarUrl }: MessageAuthor, name: string): HTMLElement {
  const avatar = element('span', { class: 'avatar', 'aria-hidden': 'true' }, initialsOf(name))
  const src = safeHref(avatarUrl ?? '')
  if (src) {
    const image = element('img', { src, alt: '' })
    image.addEventListener('error', () => image.remove())
    avatar.append(image)
  }
  return avatar
}

/** Truthful about what the service has said: nothing is called sent before it has been accepted. */
function stateText({ state }: WidgetMessage, { texts, isOnline }: RowContext): string {
  if ((state === 'pending' || state === 'retrying') && !isOnline()) return texts.waitingForNetwork
  if (state === 'pending') return texts.sending
  if (state === 'queued' || state === 'sent') return texts.sent
  return { retrying: texts.retrying, delivered: texts.delivered, read: texts.read, failed: texts.notSent }[state]
}

function timeOf({ createdAt }: WidgetMessage, locale: string | undefined): string {
  return new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit' }).format(new Date(createdAt))
}

function dayName(date: Date, { texts, locale, now }: RowContext): string {
  const today = now()
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1)
  if (date.toDateString() === today.toDateString()) return texts.today
  if (date.toDateString() === yesterday.toDateString()) return texts.yesterday
  return new Intl.DateTimeFormat(locale, { dateStyle: 'long' }).format(date)
}
