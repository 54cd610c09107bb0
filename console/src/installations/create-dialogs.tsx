import { useState } from 'preact/hooks'
import type { Connection } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionDialog } from '../ui/dialog.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { originProblem } from './installation-words.ts'

interface NewConnectionProps {
  onClose: () => void
  onCreated: () => Promise<void>
}

export function NewConnection({ onClose, onCreated }: NewConnectionProps) {
  const { api, session } = useConsole()
  const [name, setName] = useState('')
  return (
    <ActionDialog
      title="New connection"
      action="Create connection"
      disabled={name.trim() === ''}
      onClose={onClose}
      onConfirm={async () => {
        await api.workspaces.createConnection({ workspaceId: session.workspaceId, name: name.trim() })
        await onCreated()
      }}
    >
      <TextField
        label="Name"
        hint="Visible to your team only, for example “Website”."
        maxLength={128}
        value={name}
        onChange={setName}
      />
    </ActionDialog>
  )
}

/** A new installation and its identity secret, which is shown only once. */
export interface CreatedInstallation {
  siteKey: string
  secret: string
  kid: string
}

interface NewInstallationProps {
  connections: Connection[]
  onClose: () => void
  onCreated: (created: CreatedInstallation) => void
}

export function NewInstallation({ connections, onClose, onCreated }: NewInstallationProps) {
  const { api } = useConsole()
  const [connectionId, setConnection] = useState(connections[0]!.connectionId)
  const [title, setTitle] = useState('')
  const [origins, setOrigins] = useState<string[]>([])
  return (
    <ActionDialog
      title="New website"
      action="Create website"
      disabled={origins.length === 0}
      onClose={onClose}
      onConfirm={async () => {
        const appearance = title.trim() === '' ? undefined : { title: title.trim() }
        // A chat that nobody watches must not promise an answer. The operator can change it under Hours.
        const availability = { requiresOperator: true }
        const answer = await api.workspaces.createInstallation({ connectionId, origins, appearance, availability })
        const { secret, kid } = answer.identitySecret!
        onCreated({ siteKey: answer.installation!.publicSiteKey, secret, kid })
      }}
    >
      <SelectField
        label="Connection"
        value={connectionId}
        options={connections.map((known) => [known.connectionId, known.name])}
        onChange={setConnection}
      />
      <TextField
        label="Title"
        hint="Shown at the top of the chat. You can change it later."
        maxLength={128}
        placeholder="Chat with us"
        value={title}
        onChange={setTitle}
      />
      <EntryList
        label="Allowed origins"
        hint="Only pages on these origins can show the widget. At least one is required."
        placeholder="https://example.com"
        entries={origins}
        problemOf={originProblem}
        onChange={setOrigins}
      />
    </ActionDialog>
  )
}
