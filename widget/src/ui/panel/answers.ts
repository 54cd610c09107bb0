import { createChime } from '../../../../browser/chat/chime.ts'
import type { KeyValueStorage } from '../../../../browser/storage.ts'
import type { ServiceClient } from '../../client/client.ts'
import { sessionRecordKey } from '../../session/session-record.ts'
import type { StoredMessage } from '../../vocabulary/types.ts'
import { authorName, avatarOf } from '../elements/author.ts'
import { button, closeIcon, element, icon, soundIcon, soundOffIcon } from '../elements/elements.ts'
import type { WidgetTexts } from '../languages/en.ts'
import type { Shell } from './shell.ts'

export type Announcer = ReturnType<typeof createAnnouncer>

/** Announces texts while the panel is closed. An open panel announces its messages itself. */
export function createAnnouncer() {
  const region = element('div', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' })
  return {
    element: region,
    announce(text: string) {
      // A separate element each, so that a repeated text is announced, too.
      region.append(element('p', {}, text))
      while (region.childElementCount > 3) region.firstElementChild!.remove()
    },
    clear: () => region.replaceChildren(),
  }
}

interface AnswersDeps {
  client: ServiceClient
  texts(): WidgetTexts
  isOpen(): boolean
  mounted(): { shell: Shell; announcer: Announcer } | undefined
  storage: KeyValueStorage
  siteKey: string
  onOpen(): void
}

/**
 * While the panel is closed, announces new messages and shows the newest one in a card beside the launcher.
 * While the page is hidden, the title of the page also says who has answered. A button of the card turns a
 * sound on, which is off again in the next tab.
 */
export function followAnswers({ client, texts, isOpen, mounted, storage, siteKey, onOpen }: AnswersDeps) {
  const soundKey = `${sessionRecordKey(siteKey)}.sound`
  const isSoundOn = () => storage.getItem(soundKey) === 'true'
  const chime = createChime(0.08)
  let card: HTMLElement | undefined
  let shown: string | undefined
  let titles: { own: string; given: string } | undefined

  client.on('message.received', ({ message }) => {
    if (isOpen()) return
    mounted()?.announcer.announce(`${authorName(message.author, texts())}: ${message.body}`)
    // The client counts the message as unread after this event.
    queueMicrotask(() => show(message))
  })
  client.on('message.redacted', ({ message }) => message.messageId === shown && clear())
  // The visitor has read the answers, perhaps in another tab.
  client.on('unread.changed', ({ count }) => count === 0 && clear())

  return {
    clear,
    dispose() {
      clear()
      chime.dispose()
    },
  }

  function show({ messageId, author, body }: StoredMessage) {
    const { shell } = mounted() ?? {}
    if (!shell || isOpen() || shell.button.hidden || client.unread() === 0) return
    clear()
    shown = messageId
    const { agent, replied, closeAnswer } = texts()
    const name = authorName(author, texts())
    const words = [
      element('bdi', { class: 'answer-name' }, name),
      element('span', { class: 'answer-text', dir: 'auto' }, body),
    ]
    const open = button('answer-open', avatarOf(author, agent), onOpen)
    open.append(element('span', { class: 'answer-words' }, ...words))
    const close = button('answer-close', icon(closeIcon), clear, { 'aria-label': closeAnswer })
    card = element('section', { class: 'answer', 'aria-label': replied(name) }, open, soundButton(), close)
    card.addEventListener('keydown', ({ key }) => key === 'Escape' && clear())
    shell.frame.append(card)
    playSound()
    if (!document.hidden) return
    titles = { own: document.title, given: `(${client.unread()}) ${replied(name)}` }
    document.title = titles.given
    document.addEventListener('visibilitychange', restoreTitle, { once: true })
  }

  function soundButton() {
    const change = () => {
      isSoundOn() ? storage.removeItem(soundKey) : storage.setItem(soundKey, 'true')
      playSound()
      draw()
    }
    const toggle = button('answer-sound', '', change, { 'aria-label': texts().answerSound })
    const draw = () => {
      toggle.ariaPressed = `${isSoundOn()}`
      toggle.replaceChildren(icon(isSoundOn() ? soundIcon : soundOffIcon))
    }
    draw()
    return toggle
  }

  function playSound() {
    // Browsers delay sounds until the visitor has used the page.
    if (isSoundOn() && navigator.userActivation?.hasBeenActive !== false) chime.play()
  }

  function clear() {
    if (card?.matches(':focus-within')) mounted()?.shell.button.focus()
    card?.remove()
    card = shown = undefined
    restoreTitle()
  }

  /** Gives the page its title back, unless the page has changed it meanwhile. */
  function restoreTitle() {
    if (titles && document.title === titles.given) document.title = titles.own
    titles = undefined
    document.removeEventListener('visibilitychange', restoreTitle)
  }
}
