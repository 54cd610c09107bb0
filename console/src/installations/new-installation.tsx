import { useState } from 'preact/hooks'
import type { Connection } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { CopyOnce, Dialog, useAction } from '../ui/dialog.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { Field, TextField } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { originProblem } from './installation-words.ts'

/** Dialog that creates an installation and shows its identity secret once. */
export function NewInstallation({ connections, onClose }: { connections: Connection[]; onClose: () => void }) {
  const { api, router } = useConsole()
  const { busy, failure, run } = useAction()
  const [connectionId, setConnection] = useState(connections[0]!.connectionId)
  const [title, setTitle] = useState('')
  const [origins, setOrigins] = useState<string[]>([])
  const [created, setCreated] = useState<{ siteKey: string; secret: string; kid: string }>()

  function create(event: Event) {
    event.preventDefault()
    void run(async () => {
      const appearance = title.trim() === '' ? undefined : { title: title.trim() }
      const { installation, identitySecret } = await api.workspaces.createInstallation({
        connectionId,
        origins,
        appearance,
      })
      if (installation && identitySecret)
        setCreated({ siteKey: installation.publicSiteKey, secret: identitySecret.secret, kid: identitySecret.kid })
    })
  }

  if (created) {
    return (
      <CopyOnce
        title="Identity secret"
        label={`Secret (key ${created.kid})`}
        secret={created.secret}
        onClose={() => router.go(pathOf({ view: 'installation', siteKey: created.siteKey }))}
      >
        <p>
          Your backend signs visitor identities with this secret. Keep it on your server, never on a page. It is shown
          only once; you can rotate it later.
        </p>
      </CopyOnce>
    )
  }
  return (
    <Dialog title="New installation" onClose={onClose}>
      <form class="dialog-body" onSubmit={create} noValidate>
        <Field label="Connection">
          {(attributes) => (
            <select
              {...attributes}
              class="input"
              value={connectionId}
              onChange={(event) => setConnection(event.currentTarget.value)}
            >
              {connections.map((known) => (
                <option key={known.connectionId} value={known.connectionId}>
                  {known.name}
                </option>
              ))}
            </select>
          )}
        </Field>
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
        <FailureNotice failure={failure} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy || origins.length === 0}>
            Create installation
          </button>
        </div>
      </form>
    </Dialog>
  )
}
