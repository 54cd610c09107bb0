import type { ComponentChildren, RefObject } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../failures.ts'
import { Button } from './button.tsx'
import { FailureNotice } from './notice.tsx'

interface CheckedFormProps {
  /** Label of the button that submits the form. A form without one is saved with the unsaved bar. */
  button?: string
  form?: RefObject<HTMLFormElement | null>
  busy: boolean
  failure: Failure | undefined
  /** False if a field is invalid. The form is then not submitted. */
  isValid: boolean
  onSubmit(): void
  /** `isChecked` is true after the first attempt to submit. Fields show their errors from then on. */
  children(isChecked: boolean): ComponentChildren
}

/** A form that shows the errors of its fields when the operator submits it. */
export function CheckedForm({ button, form, busy, failure, isValid, onSubmit, children }: CheckedFormProps) {
  const [isChecked, setChecked] = useState(false)
  return (
    <form
      class="stack"
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        setChecked(true)
        if (isValid) onSubmit()
      }}
    >
      {children(isChecked)}
      {button && (
        <div class="line">
          <Button kind="primary" type="submit" disabled={busy}>
            {button}
          </Button>
        </div>
      )}
      <FailureNotice failure={failure} />
    </form>
  )
}
