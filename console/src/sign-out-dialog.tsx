import { useState } from 'preact/hooks'
import { useConsole } from './console-context.ts'
import { Dialog } from './ui/dialog.tsx'
import { Button, Notice } from './ui/page.tsx'

interface SignOutDialogProps {
  /** Number of conversations with drafts, in all tabs. */
  drafts: number
  /** Whether a sign-out has just failed. */
  failed?: boolean
  onClose: () => void
}

/** Asks before a sign-out that deletes drafts, and reports a sign-out that failed. */
export function SignOutDialog({ drafts, failed = false, onClose }: SignOutDialogProps) {
  const { holder } = useConsole()
  const [hasFailed, setFailed] = useState(failed)
  return (
    <Dialog title="Sign out" onClose={onClose}>
      <div class="stack dialog-body">
        {drafts > 0 && (
          <p>
            {drafts === 1 ? 'One conversation has' : `${drafts} conversations have`} an unsent draft. Signing out
            deletes drafts in all tabs.
          </p>
        )}
        {hasFailed && (
          <Notice tone="danger">You are still signed in, because the service cannot be reached. Try again.</Notice>
        )}
        <div class="line dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" onClick={async () => setFailed(!(await holder.signOut()))}>
            Sign out
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
