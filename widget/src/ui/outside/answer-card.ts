import { initialsOf } from '../../../../browser/chat/initials.ts'
import type { KeyValueStorage } from '../../../../browser/storage.ts'
import type { StoredMessage } from '../../client/types.ts'
import { element, icon } from '../elements/elements.ts'
import { closeIcon, soundIcon, soundOffIcon } from '../elements/icons.ts'
import { picture } from '../elements/picture.ts'
import { authorName } from '../languages/author-name.ts'
import type { WidgetTexts } from '../languages/en.ts'
import answerCss from './answer.css?inline'
import { createAnswerSound } from './answer-sound.ts'

/** Styles of the card. */
export const answerStyles: string = answerCss

interface AnswerCardDeps {
  frame: HTMLElement
  /** The launcher, which gets the focus if the focused card is closed. */
  button: HTMLElement
  storage: KeyValueStorage
  siteKey: string
  onOpen(): void
}

export type AnswerCard = ReturnType<typeof createAnswerCard>

/**
 * Creates the card beside the launcher that shows a new answer while the panel is closed. While the
 * page is hidden, the title of the page also says who has answered. Screen readers get the answer
 * from the announcer. A button of the card turns a sound on.
 */
export function createAnswerCard({ frame, button, storage, siteKey, onOpen }: AnswerCardDeps) {
  const sound = createAnswerSound(storage, siteKey)
  let card: HTMLElement | undefined
  let shown: string | undefined
  /** Title of the page, and the title that replaces it. */
  let titles: { own: string; given: string } | undefined
  document.addEventListener('visibilitychange', restoreTitle)

  return {
    /** Shows a message. `count` is the number of unread messages. */
    show({ messageId, author, body }: StoredMessage, count: number, texts: WidgetTexts) {
      clear()
      shown = messageId
      const name = authorName(author, texts)
      const initials = initialsOf(author.displayName || texts.agent)
      const avatar = element(
        'span',
        { class: 'avatar', 'data-bot': author.kind === 'bot' },
        initials,
        ...picture(author.avatarUrl),
      )
      const said = element('span', { class: 'answer-text', dir: 'auto' }, body)
      const open = element(
        'button',
        { class: 'answer-open', type: 'button' },
        avatar,
        element('span', { class: 'answer-words' }, element('bdi', { class: 'answer-name' }, name), said),
      )
      const label = { class: 'answer-close', type: 'button', 'aria-label': texts.closeAnswer }
      const close = element('button', label, icon(closeIcon))
      card = element(
        'section',
        { class: 'answer', 'aria-label': texts.replied(name) },
        open,
        soundButton(texts.answerSound),
        close,
      )
      open.addEventListener('click', onOpen)
      close.addEventListener('click', clear)
      card.addEventListener('keydown', ({ key }) => key === 'Escape' && clear())
      frame.append(card)
      sound.play()
      if (!document.hidden) return
      titles = { own: document.title, given: `(${count}) ${texts.replied(name)}` }
      document.title = titles.given
    },

    /** Closes the card. With an id, only if the card shows this message. */
    clear(messageId?: string) {
      if (!messageId || messageId === shown) clear()
    },

    dispose() {
      clear()
      sound.dispose()
      document.removeEventListener('visibilitychange', restoreTitle)
    },
  }

  function soundButton(label: string) {
    const toggle = element('button', { class: 'answer-sound', type: 'button', 'aria-label': label })
    const show = () => {
      toggle.ariaPressed = `${sound.isOn()}`
      toggle.replaceChildren(icon(sound.isOn() ? soundIcon : soundOffIcon))
    }
    toggle.addEventListener('click', () => {
      sound.toggle()
      show()
    })
    show()
    return toggle
  }

  function clear() {
    if (card?.matches(':focus-within')) button.focus()
    card?.remove()
    card = shown = undefined
    restoreTitle()
  }

  /** Gives the page its title back, unless the page has changed it meanwhile. */
  function restoreTitle() {
    if (titles && document.title === titles.given) document.title = titles.own
    titles = undefined
  }
}
