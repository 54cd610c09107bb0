import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { Dialog, useAction } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'

/** Dialog that creates a connection. */
export function NewConnection({ onClose, onCreated }: { onClose: () => void; onCreated: () => Promise<void> }) {
  const { api, session } = useConsole()
  const { busy, failure, run } = useAction()
  const [name, setName] = useState('')
  async function create(event: Event) {
    event.preventDefault()
    const { workspaceId } = session
    if (await run(() => api.workspaces.createConnection({ workspaceId, name: name.trim() }))) {
      await onCreated()
      onClose()
    }
  }
  return (
    <Dialog title="New connection" onClose={onClose}>
      <form class="dialog-body" onSubmit={create} noValidate>
        <TextField
          label="Name"
          hint="Visible to your team only, for example “Website”."
          maxLength={128}
          value={name}
          onChange={setName}
        />
        <FailureNotice failure={failure} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy || name.trim() === ''}>
            Create connection
          </button>
        </div>
      </form>
    </Dialog>
  )
}
