import { useState } from 'preact/hooks'
import type { Connection } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionDialog } from '../ui/dialog.tsx'
import { EntryList, SelectField, TextField } from '../ui/form.tsx'
import { usualFields } from './forms-card.tsx'
import { originProblem, toOrigin } from './installation-words.ts'

interface NewWebsiteProps {
  connections: Connection[]
  onClose: () => void
  onCreated: (siteKey: string) => void
}

/** Adds a website. Its connection is chosen only if there are several. */
export function NewWebsite({ connections, onClose, onCreated }: NewWebsiteProps) {
  const { api, session } = useConsole()
  const [chosen, setChosen] = useState(connections[0]?.connectionId)
  const [title, setTitle] = useState('')
  const [origins, setOrigins] = useState<string[]>([])

  async function create() {
    const { workspaceId } = session
    const connectionId =
      chosen ?? (await api.workspaces.createConnection({ workspaceId, name: 'Website' })).connection!.connectionId
    const { installation } = await api.workspaces.createInstallation({
      connectionId,
      origins,
      appearance: title.trim() === '' ? undefined : { title: title.trim() },
      // A chat that nobody watches must not promise an answer. It asks for an address instead.
      availability: { requiresOperator: true },
      capabilities: { offlineForm: true },
      forms: { offline: { fields: usualFields.offline } },
    })
    onCreated(installation!.publicSiteKey)
  }

  return (
    <ActionDialog
      title="New website"
      action="Create website"
      disabled={origins.length === 0}
      onClose={onClose}
      onConfirm={create}
    >
      <EntryList
        label="Addresses"
        hint="Where the chat may appear, for example shop.example."
        placeholder="shop.example"
        entries={origins}
        read={toOrigin}
        problemOf={originProblem}
        onChange={setOrigins}
      />
      <TextField
        label="Title"
        hint="Shown at the top of the chat."
        maxLength={128}
        placeholder="Chat with us"
        value={title}
        onChange={setTitle}
      />
      {connections.length > 1 && (
        <SelectField
          label="Connection"
          value={chosen!}
          options={connections.map((known) => [known.connectionId, known.name])}
          onChange={setChosen}
        />
      )}
    </ActionDialog>
  )
}
