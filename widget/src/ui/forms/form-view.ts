import { useOneLine } from '../../../../contract/line-ends.ts'
import type { FormDefinition, FormField, FormState } from '../../vocabulary/types.ts'
import { box, button, element, setAttributes, showText } from '../elements/elements.ts'
import type { WidgetTexts } from '../languages/en.ts'
import { languageOf } from '../languages/locale-choice.ts'
import { autocompleteOf, brokenRule } from './form-check.ts'
import usualLabels from './usual-labels.json' with { type: 'json' }

/** The labels of the usual fields in other languages. The console stores the English ones. */
const labels: Partial<Record<string, Record<string, string>>> = usualLabels

interface FormViewDeps {
  texts: WidgetTexts
  locale: string
  form: FormDefinition
  isOffline: boolean
  onSubmit(fields: Record<string, string>): void
  /** Called when the visitor skips the form. Undefined if the form is mandatory. */
  onSkip?: () => void
}

export type FormView = ReturnType<typeof createFormView>

interface Entry {
  field: FormField
  control: HTMLInputElement | HTMLTextAreaElement
  problem: HTMLElement
}

/** The fields keep their values until the service has accepted the form. */
export function createFormView({ texts, locale, form, isOffline, onSubmit, onSkip }: FormViewDeps) {
  const entries = form.fields.map(createEntry)
  const failure = element('p', { class: 'field-problem', role: 'alert', hidden: true })
  const submit = element('button', { class: 'primary', type: 'submit' })
  const skipLabel = isOffline ? texts.writeInstead : texts.skipForm
  const skip = button('quiet', skipLabel, () => onSkip?.(), { hidden: !onSkip })
  const title = element('h3', { class: 'form-title' }, isOffline ? texts.offlineTitle : texts.preChatTitle)
  const view = element(
    'form',
    { class: 'form-view', novalidate: true },
    title,
    element('p', { class: 'form-intro' }, isOffline ? texts.offlineIntro : texts.preChatIntro),
    ...entries.map(({ box }) => box),
    box('form-foot', failure, box('actions', submit, skip)),
  )
  view.addEventListener('submit', (event) => {
    event.preventDefault()
    if (submit.getAttribute('aria-disabled') === 'true') return
    const broken = entries.filter(check)
    if (broken.length > 0) return broken[0]!.control.focus()
    onSubmit(Object.fromEntries(entries.flatMap(({ field, control }) => givenBy(field, control))))
  })
  show({ status: 'open' })

  return {
    element: view,
    show,
    /** Returns true if the visitor has entered something that was not sent yet. */
    isFilled: () => entries.some(({ control }) => control.value !== ''),
    focus: () => entries[0]?.control.focus({ preventScroll: true }),
  }

  function show({ status, issues, error, fields }: FormState) {
    const isSending = status === 'sending'
    submit.textContent = isSending ? texts.submitting : isOffline ? texts.submitOffline : texts.submitPreChat
    setAttributes(submit, { 'aria-disabled': String(isSending) })
    // Read-only and not disabled, because a disabled field loses the focus.
    for (const { field, control } of entries) {
      control.readOnly = isSending
      control.value ||= fields?.[field.name] ?? ''
    }
    let first: Entry | undefined
    for (const entry of entries) {
      const rule = issues?.[entry.field.name]
      if (rule) showProblem(entry, rule)
      first ??= rule ? entry : undefined
    }
    const failureText = error?.code === 'VisitorSuppressed' ? texts.formSuppressed : texts.formFailed
    showText(failure, status === 'failed' && !first ? failureText : '')
    first?.control.focus()
  }

  function createEntry(field: FormField, index: number) {
    const id = `field-${isOffline ? 'offline' : 'chat'}-${index}`
    const isLong = field.type === 'textarea'
    const attributes = {
      class: 'input',
      id,
      name: field.name,
      dir: 'auto',
      // `maxlength` counts UTF-16 code units, of which a code point has up to two.
      maxlength: String(field.maxLength * 2),
      autocomplete: autocompleteOf(field),
      'aria-required': field.required ? 'true' : undefined,
      'aria-describedby': `${id}-problem`,
      ...(isLong ? { rows: '3' } : { type: field.type }),
    }
    const control = isLong ? element('textarea', attributes) : element('input', attributes)
    const problem = element('p', { class: 'field-problem', id: `${id}-problem`, hidden: true })
    const hint = element('span', { class: 'hint' }, ` (${texts.optional})`)
    const name = labels[field.label]?.[languageOf(locale)] ?? field.label
    const label = element('label', { for: id }, element('bdi', {}, name), ...(field.required ? [] : [hint]))
    const entry = { field, control, problem, box: box('form-field', label, control, problem) }
    control.addEventListener('input', () => {
      // Problems appear on submit: on blur, the submit button would move while the visitor clicks it.
      if (!problem.hidden && !brokenRule(field, control.value)) showProblem(entry, undefined)
    })
    return entry
  }

  function check(entry: Entry) {
    const rule = brokenRule(entry.field, entry.control.value)
    showProblem(entry, rule)
    return rule !== undefined
  }

  function showProblem({ field, control, problem }: Entry, rule: string | undefined) {
    showText(problem, rule && problemText(field, rule))
    setAttributes(control, { 'aria-invalid': rule && 'true' })
  }

  function problemText({ type, maxLength }: FormField, rule: string) {
    const { required, email, tel, other } = texts.fieldProblems
    if (rule === 'required' || rule === 'minLength') return required
    if (rule === 'maxLength') return texts.fieldProblems.maxLength(maxLength)
    if (rule === 'format' && type === 'email') return email
    return rule === 'format' && type === 'tel' ? tel : other
  }
}

/** Empty fields are not sent. */
function givenBy({ name, type }: FormField, { value }: Entry['control']): [string, string][] {
  const given = type === 'textarea' ? value : useOneLine(value).trim()
  return given.trim() === '' ? [] : [[name, given]]
}
