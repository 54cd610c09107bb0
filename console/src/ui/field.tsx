import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { useOneLine } from '../../../contract/line-ends.ts'

interface FieldProps {
  label: string
  hint?: ComponentChildren
  error?: string
}

interface FieldAttributes {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': boolean
}

/** A labelled field with a hint and an error. */
export function Field({
  label,
  hint,
  error,
  children,
}: FieldProps & { children: (attributes: FieldAttributes) => ComponentChildren }) {
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

interface TextFieldProps extends FieldProps {
  value: string | number
  /** True if the field gets the focus when it appears. */
  takesFocus?: boolean
  onChange: (value: string) => void
  /** For URLs and mail addresses phones show a matching keyboard and do not correct the text. */
  inputMode?: 'url' | 'email' | 'numeric'
  type?: 'number' | 'date'
  min?: number
  max?: number
  maxLength?: number
  placeholder?: string
  required?: boolean
  readOnly?: boolean
  spellcheck?: boolean
  autocapitalize?: 'off'
  /** Number of lines that are visible. A field without it has one line. */
  rows?: number
  class?: string
}

/** A labelled text field. Other properties are passed to the input. */
export function TextField({ label, hint, error, takesFocus, onChange, type, ...input }: TextFieldProps) {
  const element = useRef<HTMLInputElement>(null)
  // The cast gives both elements the properties of an input.
  const Input = (input.rows === undefined ? 'input' : 'textarea') as 'input'
  const isAddress = /url|email/.test(input.inputMode ?? '')
  // Runs as a layout effect, so that the focus moves before the next key press.
  useLayoutEffect(() => {
    if (takesFocus) element.current!.focus()
  }, [])
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <Input
          spellcheck={!isAddress}
          autocapitalize={isAddress ? 'off' : undefined}
          class="input"
          {...attributes}
          {...input}
          autofocus={takesFocus}
          type={type as 'text' | undefined}
          ref={element}
          onInput={({ currentTarget: { value } }) => onChange(input.rows === undefined ? useOneLine(value) : value)}
        />
      )}
    </Field>
  )
}

/** Returns what is wrong with the text of a field for whole minutes. */
export const minutesProblem = (text: string, max: number) =>
  /^\d+$/.test(text.trim()) && Number(text) <= max ? undefined : `Enter 0 to ${max} minutes.`

interface SelectFieldProps {
  label: string
  hint?: string
  value: string
  options: readonly (readonly [value: string, text: string])[]
  disabled?: boolean
  onChange: (value: string) => void
}

export function SelectField({ label, hint, value, options, disabled, onChange }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <select
          {...attributes}
          class="input"
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface SegmentsProps<Value extends string> extends Omit<SelectFieldProps, 'label' | 'hint' | 'onChange'> {
  legend: string
  isLegendHidden?: boolean
  options: readonly (readonly [value: Value, text: string])[]
  onChange: (value: Value) => void
}

/** A choice of which all options are visible. */
export function Segments<Value extends string>({
  legend,
  isLegendHidden,
  value,
  options,
  disabled,
  onChange,
}: SegmentsProps<Value>) {
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

/** A switch with its label. */
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
