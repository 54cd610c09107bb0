import { initialOf } from '../../../../browser/chat/initials.ts'
import { isTeam } from '../../../../browser/chat/messages.ts'
import type { WidgetMessage } from '../../vocabulary/types.ts'
import { box, button, downIcon, element, icon } from '../elements/elements.ts'
import { layOut, type PlacedMessage } from './message-layout.ts'
import { createMessageRow, type MessageRow, type RowContext, replyButtons } from './message-row.ts'

const nearPx = 96
const announceDelayMs = 150
/** Number of rows that stand in one element, which the browser skips while it is out of view. */
const groupSize = 25

export type MessageLog = ReturnType<typeof createMessageLog>

/**
 * Creates the list of messages. If the list is scrolled to its end, it scrolls to new messages.
 * When older messages are added above, the visible messages stay in place. Screen readers announce
 * new messages, but no messages from the history.
 */
export function createMessageLog(context: RowContext) {
  const { client, texts, onReply } = context
  const rows = new Map<string, MessageRow>()
  const greetingText = element('div', { dir: 'auto' })
  const greetingMark = element('span', { class: 'avatar', 'aria-hidden': 'true' })
  const greeting = box('greeting', greetingMark, box('bubble', greetingText))
  const openers = element('div', { class: 'replies', hidden: true })
  const loading = element('div', { class: 'loading', hidden: true }, texts.loadingOlder)
  const list = element('div', { class: 'list', role: 'log', 'aria-live': 'polite', 'aria-label': texts.log })
  const typing = element('div', { class: 'typing', hidden: true })
  const { talkToPerson } = texts
  const ask = () => onReply(talkToPerson)
  const person = box('replies', button('person', talkToPerson, ask))
  const newLabel = element('span', { hidden: true }, texts.newMessages)
  const jump = button('jump', icon(downIcon), toEndByHand, { 'aria-label': texts.toLatest, hidden: true })
  const scroller = element('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': texts.log })
  scroller.append(greeting, openers, list, typing, person)
  jump.append(newLabel)
  scroller.addEventListener('scroll', () => {
    followsEnd = isAtEnd()
    top = scroller.scrollTop
    showJump()
    if (scroller.scrollTop < nearPx) void showOlder()
  })
  const newVacant = () => element('div', { 'aria-live': 'off' })
  /** An empty row in a group of its own at the end. Orca reads each row that is added, so the next growing message takes this one. */
  let vacant = newVacant()
  let isLoadingOlder = false
  let announceTimer: ReturnType<typeof setTimeout> | undefined
  let followsEnd = true
  let top = 0
  /** Number of the newest agent messages that must still be marked as new. */
  let newCount = 0
  let firstNewKey: string | undefined
  let lastKey: string | undefined
  // Keep the newest message visible when the message field grows or the keyboard of a phone opens.
  const resizes = new ResizeObserver(() => {
    if (followsEnd) toEnd()
  })
  resizes.observe(scroller)
  /** Rows of unread messages of which the visitor has seen at least a half, or several lines. */
  const seen = new WeakSet<Element>()
  const visible = new IntersectionObserver(
    (entries) => {
      for (const { target, intersectionRatio, intersectionRect } of entries)
        if (intersectionRatio >= 0.5 || intersectionRect.height >= 100) seen.add(target)
      reportSeen()
    },
    { threshold: [0, 0.05, 0.1, 0.2, 0.5] },
  )

  return {
    element: box('log', scroller, loading, jump),

    /**
     * Sets the greeting above the first message, and the replies that are offered before it. `title` is
     * the chat's title, whose initial is the avatar.
     */
    setGreeting(text: string, title: string, replies: string[]) {
      openers.replaceChildren(...replyButtons(replies, onReply))
      greetingText.textContent = text
      greetingMark.textContent = initialOf(title)
    },

    /** Shows the messages. If `quiet` is true, screen readers do not announce them. */
    show(messages: readonly WidgetMessage[], quiet: boolean) {
      const wasAtEnd = followsEnd
      const anchor = wasAtEnd ? undefined : firstVisible()
      const before = anchor?.getBoundingClientRect().top
      if (quiet) busy()
      place(messages)
      if (quiet) announceSoon()
      greeting.hidden = client.hasOlder()
      const focused = scroller.querySelector<HTMLElement>('.replies:focus-within')
      openers.hidden = !client.isEmpty()
      const asked = messages.findLast(({ author, body }) => isTeam(author) || body === talkToPerson)
      person.hidden = asked?.author.kind !== 'bot'
      if (focused?.hidden) scroller.focus({ preventScroll: true })
      if (anchor?.isConnected) scroller.scrollTop += anchor.getBoundingClientRect().top - before!
      const last = messages.at(-1)
      if (wasAtEnd || quiet || last?.deliveryStatus === 'pending') toEnd()
      else if (last?.key !== lastKey) showJump(true)
      lastKey = last?.key
      followUnread()
    },

    followUnread,

    /** Marks the last messages of agents as new when the next messages are shown. */
    markNew(count: number) {
      newCount = count
      firstNewKey = undefined
    },

    setTyping(name?: string) {
      const wasAtEnd = followsEnd
      typing.hidden = !name
      const dots = element('span', { class: 'dots', 'aria-hidden': 'true' }, element('i'), element('i'), element('i'))
      typing.replaceChildren(...(name ? [dots, texts.typing(name)] : []))
      if (wasAtEnd) toEnd()
    },

    toUnseen,

    /** Scrolls back to the same place after the element was removed from the page for a moment. */
    restoreScroll() {
      if (followsEnd) toEnd()
      else scroller.scrollTop = top
    },

    dispose() {
      visible.disconnect()
      clearTimeout(announceTimer)
      resizes.disconnect()
    },
  }

  function place(messages: readonly WidgetMessage[]) {
    const stale = new Set(rows.keys())
    let before: Element | undefined
    measureGroups()
    const newest = messages.filter(({ author }) => isTeam(author)).slice(-newCount)
    if (newCount > 0 && newest.length === newCount) {
      firstNewKey = newest[0]!.key
      newCount = 0
    }
    for (const placed of layOut(messages, firstNewKey)) {
      const key = rowKey(placed.message)
      const row = rows.get(key) ?? newRow(placed)
      row.update(placed)
      rows.set(key, row)
      stale.delete(key)
      // Screen readers announce a row again if it is moved, even to its own place.
      if (row.element !== rowAfter(before)) insertAfter(before, row.element)
      before = row.element
    }
    for (const key of stale) {
      const { element: row } = rows.get(key)!
      const group = row.parentElement!
      row.remove()
      if (!group.firstElementChild) group.remove()
      rows.delete(key)
    }
    if (vacant !== rowAfter(before)) list.append(box('rows', vacant))
  }

  function newRow(placed: PlacedMessage) {
    const row = createMessageRow(context, placed, placed.message.growing ? vacant : undefined)
    if (placed.message.growing) vacant = newVacant()
    return row
  }

  function rowAfter(row?: Element) {
    if (!row) return list.firstElementChild?.firstElementChild
    return row.nextElementSibling ?? row.parentElement!.nextElementSibling?.firstElementChild
  }

  /** Inserts a row after another row, or at the beginning. Starts a new group after a full one. */
  function insertAfter(before: Element | undefined, row: Element) {
    const group = before?.parentElement
    if (before?.nextElementSibling || (group && group.childElementCount < groupSize)) return before!.after(row)
    const fresh = box('rows', row)
    if (group) group.after(fresh)
    else list.prepend(fresh)
  }

  /** Keeps the height of full groups, so that skipping them moves nothing. */
  function measureGroups() {
    for (const group of list.children as HTMLCollectionOf<HTMLElement>) {
      if (group.childElementCount < groupSize || group.style.length > 0 || group.offsetHeight === 0) continue
      group.style.containIntrinsicBlockSize = `auto ${group.offsetHeight}px`
    }
  }

  async function showOlder() {
    if (isLoadingOlder || !client.hasOlder()) return
    isLoadingOlder = true
    loading.hidden = false
    busy()
    await client.loadOlder().catch(() => {})
    loading.hidden = true
    announceSoon()
    isLoadingOlder = false
  }

  /** Returns the first bubble that is not scrolled out above. */
  function firstVisible() {
    const { top } = scroller.getBoundingClientRect()
    const firstOf = (parent?: Element) =>
      [...(parent?.children ?? [])].find((each) => each.getBoundingClientRect().bottom > top)
    return firstOf(firstOf(list))?.querySelector('.bubble') ?? undefined
  }

  /** Makes screen readers ignore the messages that are added next. */
  function busy() {
    clearTimeout(announceTimer)
    list.setAttribute('aria-busy', 'true')
  }

  /** Announces after a delay, in which the accessibility tree gets the messages that were just added. */
  function announceSoon() {
    announceTimer = setTimeout(() => list.removeAttribute('aria-busy'), announceDelayMs)
  }

  function followUnread() {
    visible.disconnect()
    for (const message of unreadMessages()) {
      const row = rowOf(message)
      if (row && !seen.has(row)) visible.observe(row)
    }
  }

  function unreadMessages() {
    const others = client.messages().filter(({ author, growing }) => author.kind !== 'visitor' && !growing)
    return others.slice(others.length - client.unread())
  }

  /** Reports the last message up to which the visitor has seen all unread messages. */
  function reportSeen() {
    const unread = unreadMessages()
    const firstUnseen = unread.findIndex((message) => !seen.has(rowOf(message)!))
    const last = unread.at(firstUnseen < 0 ? -1 : firstUnseen - 1)
    if (last && firstUnseen !== 0) client.markRead(last.sequence!)
  }

  function rowOf(message: WidgetMessage) {
    return rows.get(rowKey(message))?.element.querySelector('.bubble') ?? undefined
  }

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < nearPx
  }

  function toEnd() {
    followsEnd = true
    scroller.scrollTop = scroller.scrollHeight
    showJump()
  }

  function toEndByHand() {
    toEnd()
    scroller.focus({ preventScroll: true })
  }

  /** Scrolls to the first message that the visitor has not seen, or to the end if that shows it too. */
  function toUnseen() {
    toEnd()
    const first = unreadMessages().find((message) => !seen.has(rowOf(message)!))
    const row = first && rowOf(first)?.closest('.row')
    if (!row) return
    // The panel may be smaller while it opens.
    const { top, height } = scroller.getBoundingClientRect()
    const scale = height / scroller.offsetHeight || 1
    scroller.scrollTop += Math.min(0, (row.getBoundingClientRect().top - top) / scale)
    followsEnd = isAtEnd()
    showJump()
  }

  /** Shows the button that scrolls to the end, or hides it there. `hasNew`: a message was added below. */
  function showJump(hasNew = false) {
    // The focus must not leave the chat with the button.
    if (followsEnd && jump.matches(':focus')) scroller.focus({ preventScroll: true })
    jump.hidden = followsEnd
    newLabel.hidden = followsEnd || (newLabel.hidden && !hasNew)
    jump.setAttribute('aria-label', newLabel.hidden ? texts.toLatest : texts.newMessages)
  }
}

/** A message that has ended or was withdrawn gets another row, which screen readers announce as a new one. */
const rowKey = ({ key, redactedAt, growing }: WidgetMessage) => `${key} ${redactedAt ?? (growing ? 'growing' : '')}`
