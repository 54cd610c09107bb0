import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { useAction } from './action.ts'
import { Button } from './button.tsx'
import { ActionDialog } from './dialog.tsx'
import { FailureNotice } from './notice.tsx'

/** The forms of the view that have unsaved changes. */
const changedForms = signal<readonly HTMLFormElement[]>([])

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

interface FormOptions<Draft> {
  start: Draft | (() => Draft)
  /** Returns the problems of a draft by field. A draft with a problem is not saved. */
  problemsOf?: (draft: Draft) => Partial<Record<string, string>>
  /** `edited` has only the edited fields, so that concurrent changes of other fields are not overwritten. */
  save: (draft: Draft, edited: Partial<Draft>) => Promise<unknown>
  /** True if the form is empty again after it was saved. */
  clears?: boolean
}

export type FormState = Pick<ReturnType<typeof useForm>, 'element' | 'submit' | 'busy' | 'failure'>

/** The draft of a form. Problems are shown after the first attempt to save. */
export function useForm<Draft extends object>({ start, problemsOf, save, clears }: FormOptions<Draft>) {
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
    if (!isChanged || !form) return
    changedForms.value = [...changedForms.peek(), form]
    return () => {
      changedForms.value = changedForms.peek().filter((other) => other !== form)
    }
  }, [isChanged])

  async function submit(event: Event) {
    event.preventDefault()
    setChecked(true)
    const invalid = element.current!.querySelector<HTMLElement>('input:invalid')
    if (invalid) return invalid.focus()
    if (Object.values(problems).some(Boolean) || !(await run(() => save(draft, edited)))) return
    setChecked(false)
    if (clears) setDraft(saved)
    else setSaved(draft)
  }

  return {
    draft,
    set,
    isChanged,
    /** True after the first attempt to save. */
    isChecked,
    problems,
    element,
    submit,
    busy,
    failure,
    /** Returns the properties of a field with a text or a choice. */
    field: <Name extends keyof Draft & string>(name: Name) => ({
      value: draft[name] as Draft[Name] & string,
      error: isChecked ? problems[name] : undefined,
      onChange: (value: string) => set({ [name]: value } as Partial<Draft>),
    }),
    /** Returns the properties of a switch. */
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

interface FormProps {
  form: FormState
  /** Label of the button that saves. A form without one is saved with the bar of unsaved changes. */
  button?: string
  kind?: string
  disabled?: boolean
  class?: string
  label?: string
  onKeyDown?: (event: KeyboardEvent) => void
  /** Further buttons. */
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
          <Button type="submit" kind={kind} disabled={form.busy || disabled}>
            {button}
          </Button>
          {actions}
        </div>
      )}
    </form>
  )
}

/**
 * Shows a bar while forms in it have unsaved changes, and asks before the operator leaves the view.
 * `Discard` creates the content anew.
 */
export function WithUnsavedBar({ children }: { children: (revision: number) => ComponentChildren }) {
  const { router, announcer } = useConsole()
  const [revision, setRevision] = useState(0)
  const isChanged = changedForms.value.length > 0
  const wanted = router.held.value
  useEffect(() => {
    if (!isChanged) return
    announcer.say('There are unsaved changes.')
    return router.hold()
  }, [isChanged])

  return (
    <>
      {children(revision)}
      {isChanged && (
        <section class="unsaved" aria-label="Unsaved changes">
          <span>Unsaved changes</span>
          <Button kind="small" onClick={() => setRevision(revision + 1)}>
            Discard
          </Button>
          <Button
            kind="small primary"
            onClick={() => {
              for (const form of changedForms.peek()) form.requestSubmit()
            }}
          >
            Save changes
          </Button>
        </section>
      )}
      {wanted !== undefined && (
        <ActionDialog
          title="Leave without saving?"
          action="Leave"
          danger
          onClose={router.stay}
          onConfirm={async () => router.leave(wanted)}
        >
          <p>Your changes on this page are not saved.</p>
        </ActionDialog>
      )}
    </>
  )
}
