import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { useAction } from './action.ts'
import { Button, IconButton } from './button.tsx'
import { FailureNotice } from './notice.tsx'

interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  wide?: boolean
  /** True if Escape must not close the dialog. */
  mustDecide?: boolean
}

const textField = '.dialog-body :is(input:not([type=checkbox], [type=radio], [type=file], [readonly]), textarea)'

/** A modal dialog. The focus goes to its first text field, stays in it while open, and returns when closed. */
export function Dialog({ title, onClose, children, wide, mustDecide }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const onCloseNow = useRef(onClose)
  onCloseNow.current = onClose
  useEffect(() => {
    const before = document.activeElement
    const element = dialog.current!
    element.showModal()
    element.querySelector<HTMLElement>(textField)?.focus()
    // The browser has closed the dialog: by Escape, or by a second Escape although it must not.
    element.onclose = () => (mustDecide ? element.showModal() : onCloseNow.current())
    return () => {
      element.onclose = null
      element.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      {...(mustDecide && { closedby: 'none' })}
      onCancel={(event) => mustDecide && event.preventDefault()}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        {!mustDecide && <IconButton icon="close" label="Close" onClick={onClose} />}
      </header>
      {children}
    </dialog>
  )
}

interface ActionDialogProps extends DialogProps {
  /** Text of the button that runs the action. */
  action: string
  danger?: boolean
  disabled?: boolean
  onConfirm: () => Promise<unknown>
}

/** Asks for input or a confirmation, runs an action and closes if it succeeds. */
export function ActionDialog({ title, children, action, danger, disabled, onConfirm, onClose }: ActionDialogProps) {
  const { busy, failure, run } = useAction()
  async function confirm(event: Event) {
    event.preventDefault()
    if (await run(onConfirm)) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack dialog-body" onSubmit={confirm} noValidate>
        {children}
        <FailureNotice failure={failure} />
        <div class="line dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} disabled={busy || disabled}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface DialogButtonProps extends Omit<ActionDialogProps, 'onClose'> {
  /** Text of the button that opens the dialog. */
  button: string
  kind?: string
  /** Accessible name of the button, needed if a page has several of them. */
  label?: string
  isOff?: boolean
  onOpen?: () => void
}

/** A button that runs an action after a dialog. */
export function DialogButton({ button, kind = 'small', label, isOff, onOpen, ...dialog }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false)
  function open() {
    onOpen?.()
    setOpen(true)
  }
  return (
    <>
      <Button kind={kind} aria-label={label} disabled={isOff} onClick={open}>
        {button}
      </Button>
      {isOpen && <ActionDialog {...dialog} onClose={() => setOpen(false)} />}
    </>
  )
}

interface ActionButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: string
  act: () => Promise<unknown>
  /** What screen readers say afterwards. */
  done?: string
}

/** A button that runs an action, and shows its failure beside itself. */
export function ActionButton({ kind = 'small', act, done, ...button }: ActionButtonProps) {
  const { announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const click = () =>
    run(async () => {
      await act()
      if (done) announcer.say(done)
    })
  return (
    <>
      <FailureNotice failure={failure} />
      <Button kind={kind} disabled={busy} onClick={click} {...button} />
    </>
  )
}
