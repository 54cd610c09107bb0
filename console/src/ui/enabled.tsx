import { ActionButton, DialogButton } from './dialog.tsx'

export function EnabledTag({ enabled }: { enabled: boolean }) {
  return enabled ? <span class="tag ok">Enabled</span> : <span class="tag bad">Disabled</span>
}

interface EnableButtonProps {
  enabled: boolean
  /** Text that names the thing to disable, for example `this website`. */
  what: string
  /** Text of the button in the dialog. */
  action: string
  explanation: string
  /** Accessible name of the button, needed if a page has several of them. */
  label?: string
  set: (enabled: boolean) => Promise<unknown>
}

/** Button that enables or disables something. Asks for a confirmation before it disables. */
export function EnableButton({ enabled, what, action, explanation, label, set }: EnableButtonProps) {
  if (!enabled)
    return (
      <ActionButton kind="primary small" aria-label={label && `Enable ${label}`} act={() => set(true)}>
        Enable
      </ActionButton>
    )
  return (
    <DialogButton
      button="Disable"
      label={label && `Disable ${label}`}
      title={`Disable ${what}?`}
      action={action}
      danger
      onConfirm={() => set(false)}
    >
      <p>{explanation}</p>
    </DialogButton>
  )
}
