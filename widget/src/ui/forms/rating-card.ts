import { saveText } from '../../../../browser/chat/save-text.ts'
import { useOneLine } from '../../../../contract/line-ends.ts'
import type { ServiceClient } from '../../client/client.ts'
import { authorName } from '../elements/author.ts'
import { box, button, element, hasFocus, icon, setAttributes } from '../elements/elements.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'
import type { PanelParts } from '../panel/panel-parts.ts'

export type RatingCard = ReturnType<typeof createRatingCard>

/** Depths of the five mouths, from the worst to the best. */
const mouths = [12, 14.2, 16, 17.8, 20]
const commentMaxLength = 500

/** Creates the card below a closed conversation: five faces with a line of text, and the transcript. */
export function createRatingCard({ client, texts, dates, announce }: PanelParts) {
  let score = 0
  let isSending = false
  let shown: string | undefined

  const title = element('h3', { id: 'rating-title', tabindex: '-1' })
  const faces = mouths.map(createFace)
  const group = element('div', { class: 'faces', role: 'group', 'aria-labelledby': 'rating-title' }, ...faces)
  const comment = element('input', {
    class: 'input',
    dir: 'auto',
    type: 'text',
    autocomplete: 'off',
    'aria-label': `${texts.ratingComment} (${texts.optional})`,
    placeholder: texts.ratingComment,
  })
  const send = element('button', { class: 'primary', type: 'submit' }, texts.ratingSend)
  const more = element('form', { class: 'rating-more', novalidate: true }, comment, send)
  const problem = element('p', { class: 'field-problem', role: 'alert' })
  const transcript = button('quiet', texts.transcriptSave, save)
  const rating = element('section', { 'aria-labelledby': 'rating-title' }, title, group, more)
  const card = box('rating', rating, problem, transcript)
  more.addEventListener('submit', (event) => {
    event.preventDefault()
    void submit()
  })
  update()

  return { element: card, update }

  function createFace(depth: number, index: number) {
    const name = texts.ratingScores[index]!
    const path = `M12 2.5a9.5 9.5 0 1 0 0 19 9.5 9.5 0 1 0 0-19M8.7 9.2v.9M15.3 9.2v.9M8 16Q12 ${depth} 16 16`
    const choose = () => {
      if (isSending) return
      score = index + 1
      update()
      comment.focus()
    }
    return button('face', icon(path), choose, { title: name, 'aria-label': name })
  }

  function update() {
    const state = client.config()?.capabilities.rating ? client.presence().rating : undefined
    const isOpen = state === 'requested'
    const hadFocus = hasFocus(rating)
    if (!isOpen) score = 0
    rating.hidden = !state
    group.hidden = !isOpen
    more.hidden = score === 0
    faces.forEach((face, index) => {
      setAttributes(face, { 'aria-pressed': String(index + 1 === score), 'aria-disabled': String(isSending) })
    })
    setAttributes(send, { 'aria-disabled': String(isSending) })
    send.textContent = isSending ? texts.submitting : texts.ratingSend
    comment.readOnly = isSending
    if (state === shown) return
    shown = state
    comment.value = problem.textContent = ''
    title.textContent = isOpen ? texts.ratingTitle : texts.ratingThanks
    if (state && card.getClientRects().length > 0) announce(title.textContent)
    if (hadFocus) (state ? title : transcript).focus()
  }

  async function submit() {
    if (isSending) return
    const text = [...useOneLine(comment.value).trim()].slice(0, commentMaxLength).join('')
    isSending = true
    problem.textContent = ''
    update()
    await client.rate({ score, ...(text && { comment: text }) }).catch(() => {
      problem.textContent = texts.ratingFailed
    })
    isSending = false
    update()
  }

  async function save() {
    if (transcript.getAttribute('aria-disabled') === 'true') return
    setAttributes(transcript, { 'aria-disabled': 'true' })
    transcript.textContent = texts.transcriptSaving
    problem.textContent = ''
    try {
      // The byte order mark at the start makes editors read the file as UTF-8.
      saveText('chat.txt', 'text/plain;charset=utf-8', '\ufeff', await transcriptOf(client, texts, dates))
    } catch {
      problem.textContent = texts.transcriptFailed
    }
    setAttributes(transcript, { 'aria-disabled': undefined })
    transcript.textContent = texts.transcriptSave
  }
}

type HistoryClient = Pick<ServiceClient, 'messages' | 'hasOlder' | 'loadOlder'>

/**
 * Loads the whole history and returns it as a text. All lines of a message except its first are
 * indented, so that no message looks like several. Rejects if the history cannot be loaded.
 */
export async function transcriptOf(client: HistoryClient, texts: WidgetTexts, dates: Dates): Promise<string> {
  while (client.hasOlder()) {
    const loaded = client.messages().length
    await client.loadOlder()
    if (client.hasOlder() && client.messages().length === loaded) throw new Error('the history is incomplete')
  }
  const stored = client.messages().filter(({ messageId }) => messageId !== undefined)
  const lines = stored.map(({ author, body, createdAt, redactedAt }) => {
    const said = redactedAt ? texts.withdrawn : body.replaceAll('\n', '\n    ')
    return `[${dates.moment(createdAt)}] ${authorName(author, texts)}: ${said}`
  })
  return `${lines.join('\n')}\n`
}
