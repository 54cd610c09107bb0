import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { describeFailure, type Failure } from '../failures.ts'
import { Icon } from './icon.tsx'
import { FailureNotice } from './notice.tsx'

/** A modal dialog. It keeps the focus while open and restores it when closed. */
export function Dialog({
  title,
  onClose,
  children,
  wide = false,
  mustDecide = false,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
  wide?: boolean
  /** Escape does not close the dialog. */
  mustDecide?: boolean
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    const element = dialog.current!
    element.showModal()
    return () => {
      element.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        if (!mustDecide) onClose()
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        {!mustDecide && (
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  )
}

/** Asks for confirmation before an action that is hard to undo. */
export function Confirm({
  title,
  children,
  action,
  danger = false,
  onConfirm,
  onClose,
}: {
  title: string
  children: ComponentChildren
  action: string
  danger?: boolean
  onConfirm: () => Promise<unknown>
  onClose: () => void
}) {
  const { busy, failure, run } = useAction()
  async function confirm(event: Event) {
    event.preventDefault()
    if (await run(onConfirm)) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="dialog-body" onSubmit={confirm}>
        {children}
        <FailureNotice failure={failure} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={danger ? 'button danger' : 'button primary'} disabled={busy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Shows a secret once. Closes only after the operator confirms that it is stored. */
export function CopyOnce({
  title,
  secret,
  label,
  children,
  onClose,
}: {
  title: string
  secret: string
  label: string
  children: ComponentChildren
  onClose: () => void
}) {
  const [isStored, setStored] = useState(false)
  const id = useId()
  return (
    <Dialog title={title} onClose={onClose} mustDecide>
      <div class="dialog-body">
        {children}
        <div class="field">
          <label for={id}>{label}</label>
          <div class="copy-row">
            <input
              id={id}
              class="input mono"
              readOnly
              value={secret}
              onFocus={(event) => event.currentTarget.select()}
            />
            <CopyButton text={secret} label="Copy" />
          </div>
        </div>
        <div class="check">
          <input
            type="checkbox"
            id={`${id}-stored`}
            checked={isStored}
            onChange={(event) => setStored(event.currentTarget.checked)}
          />
          <label for={`${id}-stored`}>I have stored it. It will not be shown again.</label>
        </div>
        <div class="dialog-actions">
          <button type="button" class="button primary" disabled={!isStored} onClick={onClose}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  )
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [status, setStatus] = useState('')
  async function copy() {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setStatus(done ? 'Copied' : 'Select and copy manually')
  }
  return (
    <button type="button" class="button" onClick={copy}>
      <Icon name="copy" />
      <span role="status">{status || label}</span>
    </button>
  )
}

/** Runs one call at a time. Ignores clicks while a call is running. */
export function useAction() {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const running = useRef(false)
  async function run(call: () => Promise<unknown>): Promise<boolean> {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setFailure(undefined)
    try {
      await call()
      return true
    } catch (error) {
      setFailure(describeFailure(error))
      return false
    } finally {
      running.current = false
      setBusy(false)
    }
  }
  return { busy, failure, run, clear: () => setFailure(undefined) }
}
