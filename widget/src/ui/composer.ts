import { element, icon } from './elements.ts'
import { sendIcon } from './icons.ts'
import type { ChatTexts } from './texts.ts'

export type Composer = ReturnType<typeof createComposer>

/**
 * Where the visitor writes. Enter sends, Shift+Enter makes a new line, and while an input method is composing Enter belongs
 * to it. `onSend` answers an explanation where the text could not be taken; the text then stays. `onDraft` is told what stands
 * there with each change of the visitor's.
 */
export function createComposer(
  texts: ChatTexts,
  onSend: (body: string) => string | undefined,
  onDraft: (text: string) => void,
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
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true })
  const form = element('form', { class: 'composer' }, problem, element('div', { class: 'entry' }, field, send))

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    submit()
  })
  field.addEventListener('input', () => {
    refresh()
    onDraft(field.value)
  })
  field.addEventListener('keydown', (event) => {
    // Safari ends the composition before its Enter arrives. That Enter has the key code 229.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return
    event.preventDefault()
    submit()
  })
  refresh()

  return {
    element: form,
    focus() {
      // A hidden field could not be measured.
      refresh()
      field.focus({ preventScroll: true })
    },
    draft: () => field.value,
    setDraft(text: string) {
      field.value = text
      refresh()
    },
  }

  function submit() {
    if (field.value.trim() === '') return
    const refused = onSend(field.value)
    problem.hidden = refused === undefined
    problem.textContent = refused ?? ''
    if (refused !== undefined) return
    field.value = ''
    refresh()
    onDraft('')
    field.focus({ preventScroll: true })
  }

  function refresh() {
    // The text has its own direction; the placeholder has the page's.
    field.dir = field.value ? 'auto' : ''
    send.setAttribute('aria-disabled', String(field.value.trim() === ''))
    field.style.height = 'auto'
    if (field.scrollHeight > 0) field.style.height = `${field.scrollHeight}px`
  }
}
