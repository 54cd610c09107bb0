import { signal } from '@preact/signals'
import type { ComponentChildren, LooseInputHTMLAttributes, SelectHTMLAttributes } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useOneLine } from '../../../contract/line-ends.ts'
import { issueText } from '../failures.ts'
import { formatNumber } from '../time.ts'
import { useAction } from './load.tsx'
import { Button, Card, FailureNotice, IconButton } from './page.tsx'

let isPressed = false
for (const type of ['pointerdown', 'pointerup', 'pointercancel'] as const)
  addEventListener(type, () => (isPressed = type === 'pointerdown'), { capture: true })

/**
 * Runs an action that may move buttons. If the pointer is pressed, waits until it is released,
 * because a button that moves between press and release gets no click.
 */
function afterPress(action: () => void) {
  if (!isPressed) return action()
  const released = new AbortController()
  const release = () => {
    released.abort()
    action()
  }
  for (const type of ['pointerup', 'pointercancel'] as const)
    addEventListener(type, release, { capture: true, signal: released.signal })
}

interface FieldProps {
  label: string
  hint?: ComponentChildren
  error?: string
}

interface FieldFrameProps extends FieldProps {
  children: (attributes: { id: string; 'aria-describedby'?: string; 'aria-invalid': boolean }) => ComponentChildren
}

function Field({ label, hint, error, children }: FieldFrameProps) {
  const id = useId()
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error !== undefined })}
      <FieldNotes id={id} hint={hint} error={error} />
    </div>
  )
}

/** The hint and the error of a field. Their ids are `${id}-hint` and `${id}-error`. */
export function FieldNotes({ id, hint, error }: { id: string; hint: ComponentChildren; error?: string }) {
  return (
    <>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </>
  )
}

interface TextFieldProps
  extends FieldProps,
    Omit<LooseInputHTMLAttributes<HTMLInputElement>, 'label' | 'role' | 'onChange'> {
  /** True if the field gets the focus when it appears. */
  takesFocus?: boolean
  onChange?: (value: string) => void
  /** Number of lines that are visible. A field without it has one line. */
  rows?: number
  /** Shown behind the field, for example a button. */
  beside?: ComponentChildren
}

/** A labelled text field. Other properties are passed to the input. */
export function TextField({ label, hint, error, takesFocus, onChange, type, beside, ...input }: TextFieldProps) {
  const element = useRef<HTMLInputElement>(null)
  // The cast gives both elements the properties of an input.
  const Input = (input.rows === undefined ? 'input' : 'textarea') as 'input'
  // For URLs and mail addresses phones show a matching keyboard and do not correct the text.
  const isAddress = /url|email/.test(String(input.inputMode))
  // Runs as a layout effect, so that the focus moves before the next key press.
  useLayoutEffect(() => {
    if (takesFocus) element.current!.focus()
  }, [])
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => {
        const field = (
          <Input
            spellcheck={!isAddress}
            autocapitalize={isAddress ? 'off' : undefined}
            class="input"
            {...attributes}
            {...input}
            autofocus={takesFocus}
            type={type as 'text' | undefined}
            ref={element}
            onInput={({ currentTarget: { value } }) => onChange?.(input.rows === undefined ? useOneLine(value) : value)}
          />
        )
        if (!beside) return field
        return (
          <div class="copy-row">
            {field}
            {beside}
          </div>
        )
      }}
    </Field>
  )
}

interface SearchBarProps extends Pick<TextFieldProps, 'label' | 'takesFocus' | 'maxLength'> {
  button?: string
  kind?: string
  busy?: boolean
  /** Whether an empty text may be searched for. */
  mayBeEmpty?: boolean
  onSearch: (text: string) => void
  children?: ComponentChildren
}

/** A field with a button. Its text is searched for when the operator presses the button, or Enter. */
export function SearchBar({ button = 'Search', kind, busy, mayBeEmpty, onSearch, children, ...field }: SearchBarProps) {
  const [text, setText] = useState('')
  const isOff = busy || (!mayBeEmpty && text.trim() === '')
  return (
    <form
      class="bar"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        if (!isOff) onSearch(text.trim())
      }}
    >
      {children}
      <TextField value={text} onChange={setText} {...field} />
      <Button type="submit" kind={kind} disabled={isOff} text={button} />
    </form>
  )
}

/** The name by which a team tells things of one kind apart. */
export const NameField = (field: Pick<TextFieldProps, 'value' | 'onChange'>) => (
  <TextField label="Name" hint="Only your team sees it." maxLength={80} {...field} />
)

/** Why an operator blocks somebody. */
export const ReasonField = (field: Pick<TextFieldProps, 'value' | 'onChange' | 'hint'>) => (
  <TextField label="Reason" hint="For your records. Visitors never see it." maxLength={512} {...field} />
)

/** Returns what is wrong with the text of a field for a whole number. */
export const numberProblem = (text: string, from: number, to: number, unit = '') =>
  /^\d+$/.test(text.trim()) && Number(text) >= from && Number(text) <= to
    ? undefined
    : `Enter ${from} to ${formatNumber(to)}${unit}.`

interface SelectFieldProps {
  label: string
  hint?: string
  value: string
  options: readonly (readonly [value: string, text: string])[]
  disabled?: boolean
  onChange: (value: string) => void
}

export function SelectField({ label, hint, ...select }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => <Select {...attributes} {...select} />}
    </Field>
  )
}

type SelectProps = Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'role' | 'multiple' | 'size'> &
  Pick<SelectFieldProps, 'options'> & { onChange: (value: string, select: HTMLSelectElement) => void }

export const Select = ({ options, onChange, ...attributes }: SelectProps) => (
  <select class="input" {...attributes} onChange={({ currentTarget: select }) => onChange(select.value, select)}>
    {options.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
)

interface SegmentsProps<Value extends string> extends Omit<SelectFieldProps, 'label' | 'hint' | 'onChange'> {
  legend: string
  isLegendHidden?: boolean
  options: readonly (readonly [value: Value, text: string])[]
  onChange: (value: Value) => void
}

/** A choice of which all options are visible. */
export function Segments<Value extends string>(props: SegmentsProps<Value>) {
  const { legend, isLegendHidden, value, options, disabled, onChange } = props
  const name = useId()
  return (
    <fieldset class="segments">
      <legend class={isLegendHidden ? 'visually-hidden' : undefined}>{legend}</legend>
      {options.map(([option, text]) => (
        <label key={option}>
          <input
            type="radio"
            name={name}
            disabled={disabled}
            checked={option === value}
            onChange={() => onChange(option)}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  )
}

interface ToggleProps {
  label: string
  hint?: string
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}

export function Toggle({ label, hint, checked, onChange, disabled }: ToggleProps) {
  const id = useId()
  return (
    <div class="toggle">
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        id={id}
        checked={checked}
        disabled={disabled}
        aria-describedby={hint && `${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        <FieldNotes id={id} hint={hint} />
      </div>
    </div>
  )
}

interface EntryListProps {
  label: string
  hint: string
  placeholder: string
  entries: readonly string[]
  /** Returns the entry that a typed text means. */
  read?: (text: string) => string
  problemOf: (entry: string) => string | undefined
  /**
   * If it rejects, the error is shown, and the new entry is put back into the field. Until it
   * resolves, no other change is accepted, because it would undo this one.
   */
  onChange: (entries: string[]) => unknown
  suggestions?: readonly string[]
  /** Whether a typed entry is added when the field loses the focus. If false, it is dropped. */
  addsOnBlur?: boolean
}

export function EntryList({ read = (text) => text, suggestions = [], addsOnBlur = true, ...props }: EntryListProps) {
  const { label, hint, placeholder, entries, problemOf, onChange } = props
  const listId = useId()
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<string>()
  const { busy, failure, run } = useAction()

  /** Resolves to false if the change is not stored, also because another change is being stored. */
  const change = (changed: string[]) => run(async () => onChange(changed))

  async function add() {
    const field = input.current
    // The operator has left the view.
    if (!field) return
    const entry = read(useOneLine(field.value).trim())
    const wrong = entry === '' ? undefined : entries.includes(entry) ? 'Already in the list.' : problemOf(entry)
    setProblem(wrong)
    // Makes the form invalid, so that it is not saved without the entry.
    field.setCustomValidity(wrong ?? '')
    if (entry === '' || wrong !== undefined) return
    field.value = ''
    if (!(await change([...entries, entry])) && field.value === '') field.value = entry
  }

  function addAndStay() {
    void add()
    input.current!.focus()
  }

  function remove(entry: string) {
    void change(entries.filter((other) => other !== entry))
    input.current!.focus()
  }

  return (
    <>
      <Field label={label} hint={hint} error={problem}>
        {(attributes) => (
          <>
            <Entries of={entries.map((entry) => [entry, entry])} disabled={busy} onRemove={remove} />
            <div class="copy-row">
              <input
                {...attributes}
                ref={input}
                class="input"
                placeholder={placeholder}
                list={suggestions.length > 0 ? listId : undefined}
                autocomplete="off"
                spellcheck={false}
                // A typed entry is added when the field loses the focus, so that saving does not drop it.
                onBlur={addsOnBlur ? () => afterPress(() => void add()) : undefined}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter') return
                  event.preventDefault()
                  addAndStay()
                }}
              />
              <datalist id={listId}>
                {suggestions
                  .filter((known) => !entries.includes(known))
                  .map((known) => (
                    <option key={known} value={known} />
                  ))}
              </datalist>
              <Button disabled={busy} onClick={addAndStay}>
                Add<span class="visually-hidden"> to {label}</span>
              </Button>
            </div>
          </>
        )}
      </Field>
      <FailureNotice failure={failure} />
    </>
  )
}

interface EntriesProps {
  of: [name: string, text: string][]
  disabled?: boolean
  onRemove: (name: string) => void
}

export function Entries({ of, disabled, onRemove }: EntriesProps) {
  if (of.length === 0) return null
  return (
    <ul class="entries">
      {of.map(([name, text]) => (
        <li key={name}>
          <code dir="auto">{text}</code>
          <IconButton icon="close" label={`Remove ${name}`} disabled={disabled} onClick={() => onRemove(name)} />
        </li>
      ))}
    </ul>
  )
}

/** The forms of the view that have unsaved changes. Those of dialogs do not count. */
export const changedForms = signal<readonly HTMLFormElement[]>([])

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

export interface FormOptions<Draft> {
  start: Draft | (() => Draft)
  /** Returns the problems of a draft by field. A draft with a problem is not saved. */
  problemsOf?: ((draft: Draft) => Partial<Record<string, string>>) | undefined
  /** `edited` has only the edited fields, so that concurrent changes of other fields are not overwritten. */
  save: (draft: Draft, edited: Partial<Draft>) => Promise<unknown>
  /** What screen readers say when the form was saved. */
  done?: string | undefined
  /** True if the form is empty again after it was saved. */
  clears?: boolean
}

export type FormOf<Draft extends object> = ReturnType<typeof useForm<Draft>>
type FormState = Pick<FormOf<object>, 'element' | 'submit' | 'busy' | 'failure'>

/** The draft of a form. Problems are shown after the first attempt to save. */
export function useForm<Draft extends object>({ start, problemsOf, save, done, clears }: FormOptions<Draft>) {
  const [draft, setDraft] = useState<Draft>(start)
  const [saved, setSaved] = useState(draft)
  const [isChecked, setChecked] = useState(false)
  const { busy, failure, run } = useAction()
  const element = useRef<HTMLFormElement>(null)
  const problems = problemsOf?.(draft) ?? {}
  const edited = Object.fromEntries(
    Object.entries(draft).filter(([name, value]) => !isSame(value, saved[name as keyof Draft])),
  ) as Partial<Draft>
  const isChanged = Object.keys(edited).length > 0
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))

  useEffect(() => {
    const form = element.current
    if (!isChanged || !form || form.closest('dialog')) return
    changedForms.value = [...changedForms.peek(), form]
    return () => {
      changedForms.value = changedForms.peek().filter((other) => other !== form)
    }
  }, [isChanged])
  useEffect(() => element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [isChecked, failure])

  async function submit(event: Event) {
    event.preventDefault()
    setChecked(true)
    const invalid = element.current!.querySelector<HTMLElement>('input:invalid')
    if (invalid) return invalid.focus()
    if (Object.values(problems).some(Boolean) || !(await run(() => save(draft, edited), done))) return
    setChecked(false)
    if (clears) setDraft(saved)
    else setSaved(draft)
  }

  return {
    draft,
    set,
    isChanged,
    isChecked,
    problems,
    element,
    submit,
    busy,
    failure,
    /** Returns the properties of a field with a text or a choice. */
    field: <Name extends keyof Draft & string>(name: Name) => ({
      value: draft[name] as Draft[Name] & string,
      error: isChecked
        ? (problems[name] ?? issueText(failure?.issues.find(({ path }) => path === `/${name}`)))
        : undefined,
      onChange: (value: string) => set({ [name]: value } as Partial<Draft>),
    }),
    toggle: <Name extends keyof Draft & string>(name: Name) => ({
      checked: draft[name] as Draft[Name] & boolean,
      onChange: (isOn: boolean) => set({ [name]: isOn } as Partial<Draft>),
    }),
  }
}

let nextKey = 0

/** Gives an entry of an edited list a key, which identifies its fields on the page. */
export const keyed = <Entry extends object>(entry: Entry) => ({ ...entry, key: nextKey++ })

export function withoutKey<Entry extends { key: number }>({ key: _, ...entry }: Entry) {
  return entry
}

export const editList = <Entry,>(entries: readonly Entry[], set: (next: Entry[]) => void) => ({
  add: (...added: Entry[]) => set([...entries, ...added]),
  change: (index: number, change: Partial<Entry>) => set(entries.with(index, { ...entries[index]!, ...change })),
  remove: (index: number) => set(entries.toSpliced(index, 1)),
})

interface FormProps {
  form: FormState
  /** Label of the button that saves. A form without one is saved with the bar of unsaved changes. */
  button?: string
  kind?: string
  disabled?: boolean
  class?: string
  label?: string
  onKeyDown?: (event: KeyboardEvent) => void
  actions?: ComponentChildren
  children: ComponentChildren
}

export function Form({ form, button, kind = 'primary', disabled, label, actions, children, ...attributes }: FormProps) {
  return (
    <form class="stack" ref={form.element} noValidate onSubmit={form.submit} aria-label={label} {...attributes}>
      {children}
      <FailureNotice failure={form.failure} />
      {button && (
        <div class="line">
          <Button type="submit" kind={kind} disabled={form.busy || disabled} text={button} />
          {actions}
        </div>
      )}
    </form>
  )
}

interface NameCardProps {
  name: string
  button?: string
  done?: string
  save: (name: string) => Promise<unknown>
}

/** A card that changes the name of a website or of the workspace. */
export function NameCard({ name, button, done, save }: NameCardProps) {
  const form = useForm({ start: { name }, save: (draft) => save(draft.name.trim()), done })
  return (
    <Card title="Name">
      <Form form={form} button={button}>
        <NameField {...form.field('name')} />
      </Form>
    </Card>
  )
}
