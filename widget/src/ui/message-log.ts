import type { WidgetMessage } from '../types.ts'
import { element, icon } from './elements.ts'
import { downIcon } from './icons.ts'
import { initialOf } from './initials.ts'
import { layOut } from './message-layout.ts'
import { createMessageRow, type MessageRow, type RowContext } from './message-row.ts'

const nearPx = 96
const settlesMs = 150

export interface MessageLogDeps extends RowContext {
  /** Loads older messages; resolves when they are in the list. */
  loadOlder(): Promise<void>
  hasOlder(): boolean
}

export type MessageLog = ReturnType<typeof createMessageLog>

/**
 * The conversation. Stays at its end while the visitor reads there, and in place while older messages are put before what is
 * being read. New messages are announced politely; what is loaded from the history is not.
 */
export function createMessageLog(deps: MessageLogDeps) {
  const { texts } = deps
  const rows = new Map<string, MessageRow>()
  const greetingText = element('div', { dir: 'auto' })
  const greetingMark = element('span', { class: 'avatar', 'aria-hidden': 'true' })
  const greeting = element(
    'div',
    { class: 'greeting' },
    greetingMark,
    element('div', { class: 'bubble' }, greetingText),
  )
  const previousEnded = element('div', { class: 'loading', hidden: true }, texts.previousEnded)
  const loading = element('div', { class: 'loading', hidden: true }, texts.loadingOlder)
  const list = element('div', { class: 'list', role: 'log', 'aria-live': 'polite', 'aria-label': texts.log })
  const typing = element('div', { class: 'typing', hidden: true })
  const news = element('span', { hidden: true }, texts.newMessages)
  const jump = element(
    'button',
    { class: 'jump', type: 'button', 'aria-label': texts.toLatest, hidden: true },
    icon(downIcon),
    news,
  )
  const scroller = element('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': texts.log })
  scroller.append(loading, previousEnded, greeting, list, typing)
  jump.addEventListener('click', () => {
    toEnd()
    scroller.focus({ preventScroll: true })
  })
  scroller.addEventListener('scroll', () => {
    followsEnd = isAtEnd()
    showJump()
    if (scroller.scrollTop < nearPx) void showOlder()
  })
  let isLoadingOlder = false
  let settling: ReturnType<typeof setTimeout> | undefined
  let followsEnd = true
  // The composer grows, and on phones the keyboard takes half the height: the newest message stays in sight.
  const resizes = new ResizeObserver(() => {
    if (followsEnd) toEnd()
  })
  resizes.observe(scroller)

  return {
    element: element('div', { class: 'log' }, scroller, jump),

    /** Sets the greeting above the first message. */
    setGreeting(text: string, title: string) {
      greetingText.textContent = text
      greetingMark.textContent = initialOf(title)
    },

    showPreviousEnded(isShown: boolean) {
      previousEnded.hidden = !isShown
    },

    /** Shows the messages. `quiet`: they are loaded, not new, and are not announced. */
    show(messages: readonly WidgetMessage[], quiet: boolean) {
      const wasAtEnd = followsEnd
      const knew = rows.size
      if (quiet) busy()
      place(messages)
      if (quiet) settle()
      greeting.hidden = deps.hasOlder()
      const last = messages.at(-1)
      if (wasAtEnd || quiet || last?.deliveryStatus === 'pending') toEnd()
      else if (rows.size > knew) showJump(true)
    },

    setTyping(name: string | undefined) {
      const wasAtEnd = followsEnd
      typing.hidden = name === undefined
      const dots = element('span', { class: 'dots', 'aria-hidden': 'true' }, element('i'), element('i'), element('i'))
      typing.replaceChildren(...(name === undefined ? [] : [dots, texts.typing(name)]))
      if (wasAtEnd) toEnd()
    },

    toEnd,

    dispose() {
      clearTimeout(settling)
      resizes.disconnect()
    },
  }

  function place(messages: readonly WidgetMessage[]) {
    const stale = new Set(rows.keys())
    let next = list.firstElementChild
    for (const placed of layOut(messages)) {
      const { key } = placed.message
      const row = rows.get(key) ?? createMessageRow(placed, deps)
      if (rows.has(key)) row.update(placed)
      rows.set(key, row)
      stale.delete(key)
      // Moving a node would make a screen reader read it again.
      if (row.element === next) next = next.nextElementSibling
      else list.insertBefore(row.element, next)
    }
    for (const key of stale) {
      rows.get(key)?.element.remove()
      rows.delete(key)
    }
  }

  async function showOlder() {
    if (isLoadingOlder || !deps.hasOlder()) return
    isLoadingOlder = true
    loading.hidden = false
    busy()
    const fromEnd = scroller.scrollHeight - scroller.scrollTop
    await deps.loadOlder().catch(() => {})
    loading.hidden = true
    scroller.scrollTop = scroller.scrollHeight - fromEnd
    settle()
    isLoadingOlder = false
  }

  /** Keeps screen readers from announcing loaded messages. */
  function busy() {
    clearTimeout(settling)
    list.setAttribute('aria-busy', 'true')
  }

  /** The accessibility tree follows the document a moment later, and must have taken all of it by then. */
  function settle() {
    settling = setTimeout(() => list.removeAttribute('aria-busy'), settlesMs)
  }

  function isAtEnd(): boolean {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < nearPx
  }

  function toEnd() {
    followsEnd = true
    scroller.scrollTop = scroller.scrollHeight
    showJump()
  }

  /** Shows the button to the newest message. `hasNews`: a new message is out of sight. */
  function showJump(hasNews = false) {
    // The focus does not fall out of the chat with the button that had it.
    if (followsEnd && jump.matches(':focus')) scroller.focus({ preventScroll: true })
    jump.hidden = followsEnd
    news.hidden = followsEnd || (news.hidden && !hasNews)
    jump.setAttribute('aria-label', news.hidden ? texts.toLatest : texts.newMessages)
  }
}
