import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { Button } from './button.tsx'
import { ActionDialog } from './dialog.tsx'

/** The forms of the view that have unsaved changes. */
const changedForms = signal<readonly HTMLFormElement[]>([])

/**
 * Reports a form whose content differs from the saved one. `edited` is the content as the form would
 * save it. Call `onSaved` after a successful save.
 */
export function useUnsaved(edited: unknown) {
  const form = useRef<HTMLFormElement>(null)
  const text = JSON.stringify(edited)
  const [saved, setSaved] = useState(text)
  const isChanged = text !== saved
  useEffect(() => {
    const element = form.current
    if (!isChanged || !element) return
    changedForms.value = [...changedForms.peek(), element]
    return () => {
      changedForms.value = changedForms.peek().filter((other) => other !== element)
    }
  }, [isChanged])
  return { form, onSaved: () => setSaved(text) }
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
