import { isComposing } from '../../../../browser/chat/composing.ts'
import { box, button, element, hasFocus, icon, sendIcon, showText, stopIcon } from '../elements/elements.ts'
import type { WidgetTexts } from '../languages/en.ts'

export type Composer = ReturnType<typeof createComposer>

/**
 * Creates the message field with its send button. Enter sends the message, and Shift+Enter adds a
 * line. During the composition of an input method, Enter does not send.
 *
 * @param onSend sends the text. If the text cannot be sent, returns the reason; the field then keeps
 * its content.
 * @param onDraft called on each edit
 * @param onStop stops the answer that grows; the button then stands in the place of *Send*
 */
export function createComposer(
  texts: WidgetTexts,
  onSend: (body: string) => string | undefined,
  onDraft: (text: string) => void,
  onStop: () => void,
) {
  const field = element('textarea', {
    class: 'field',
    rows: '1',
    'aria-label': texts.composerLabel,
    placeholder: texts.composerPlaceholder,
    enterkeyhint: 'send',
    autocomplete: 'off',
  })
  const send = element('button', { class: 'send', type: 'submit', 'aria-label': texts.send }, icon(sendIcon))
  const stop = button('send', icon(stopIcon), onStop, { 'aria-label': texts.stop, hidden: true })
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true })
  const form = element('form', { class: 'composer' }, problem, box('entry', field, send, stop))

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    submit()
  })
  field.addEventListener('input', () => {
    problem.hidden = true
    refresh()
    onDraft(field.value)
  })
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return
    event.preventDefault()
    submit()
  })
  refresh()

  return {
    element: form,
    focus() {
      // Update the height, which cannot be measured while the field is hidden.
      refresh()
      field.focus({ preventScroll: true })
    },
    draft: () => field.value,
    setStoppable(isStoppable: boolean) {
      if (stop.hidden !== isStoppable) return
      const hadFocus = hasFocus(stop) || hasFocus(send)
      stop.hidden = !isStoppable
      send.hidden = isStoppable
      if (hadFocus) (isStoppable ? stop : field).focus({ preventScroll: true })
    },
    setDraft(text: string) {
      field.value = text
      refresh()
    },
  }

  function submit() {
    if (field.value.trim() === '') return
    const refused = onSend(field.value)
    showText(problem, refused)
    if (refused !== undefined) return
    field.value = ''
    refresh()
    onDraft('')
    field.focus({ preventScroll: true })
  }

  function refresh() {
    // The placeholder has the direction of the user interface.
    field.dir = field.value ? 'auto' : ''
    send.setAttribute('aria-disabled', String(field.value.trim() === ''))
    field.style.height = 'auto'
    if (field.scrollHeight > 0) field.style.height = `${field.scrollHeight}px`
  }
}
