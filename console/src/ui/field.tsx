import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

export interface FieldAttributes {
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
}: {
  label: string
  hint?: ComponentChildren
  error?: string | undefined
  children: (attributes: FieldAttributes) => ComponentChildren
}) {
  const id = useId()
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error !== undefined })}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  )
}

/** A labelled one-line field. Other properties are passed to the input. */
export function TextField({
  label,
  hint,
  error,
  mono = false,
  takesFocus = false,
  inputMode,
  spellcheck = inputMode !== 'url',
  onChange,
  ...input
}: {
  label: string
  hint?: string
  error?: string | undefined
  mono?: boolean
  /** Focuses the field when it appears. */
  takesFocus?: boolean
  value: string
  onChange: (value: string) => void
  /** A URL: phones show a matching keyboard and do not correct the text. */
  inputMode?: 'url'
  maxLength: number
  placeholder?: string
  required?: boolean
  spellcheck?: boolean
}) {
  const element = useRef<HTMLInputElement>(null)
  // In a layout effect, so that the focus moves before the next key press.
  useLayoutEffect(() => {
    if (takesFocus) element.current!.focus()
  }, [])
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <input
          {...attributes}
          {...input}
          inputMode={inputMode}
          spellcheck={spellcheck}
          autocapitalize={inputMode === 'url' ? 'off' : undefined}
          ref={element}
          class={mono ? 'input mono' : 'input'}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** A switch with its label. */
export function Toggle({
  label,
  hint,
  checked,
  onChange,
  disabled = false,
}: {
  label: string
  hint?: string
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}) {
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
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && (
          <p class="hint" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
