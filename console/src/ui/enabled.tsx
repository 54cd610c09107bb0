import { useState } from 'preact/hooks'
import { useAction } from './action.ts'
import { Button } from './button.tsx'
import { ActionDialog } from './dialog.tsx'
import { FailureNotice } from './notice.tsx'

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
  const { busy, failure, run } = useAction()
  const [asking, setAsking] = useState(false)
  const verb = enabled ? 'Disable' : 'Enable'
  return (
    <>
      <Button
        kind={enabled ? 'small' : 'primary small'}
        disabled={busy}
        aria-label={label && `${verb} ${label}`}
        onClick={() => (enabled ? setAsking(true) : void run(() => set(true)))}
      >
        {verb}
      </Button>
      <FailureNotice failure={failure} />
      {asking && (
        <ActionDialog
          title={`Disable ${what}?`}
          action={action}
          danger
          onClose={() => setAsking(false)}
          onConfirm={() => set(false)}
        >
          <p>{explanation}</p>
        </ActionDialog>
      )}
    </>
  )
}
