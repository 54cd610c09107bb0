import { useState } from 'preact/hooks'
import type { Subscription } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/action.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { FailureNotice, Notice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'

interface HeadersCardProps {
  subscription: Subscription
  onChanged: () => Promise<void>
}

/** Shows the names of the custom headers. Values are never shown again. */
export function HeadersCard({ subscription, onChanged }: HeadersCardProps) {
  const { subscriptionId, headers, droppedHeaders } = subscription
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const [name, setName] = useState('')
  const [value, setValue] = useState('')

  /** Saves the list. Headers without a value keep their present value. */
  const save = (next: { name: string; value?: string }[], done: string) =>
    run(async () => {
      await api.leads.updateSubscription({ subscriptionId, headers: { headers: next } })
      announcer.say(done)
      await onChanged()
    })
  const others = (removed: string) =>
    headers.filter((header) => header.name !== removed.toLowerCase()).map((header) => ({ name: header.name }))

  async function add(event: Event) {
    event.preventDefault()
    if (name.trim() === '' || value === '') return
    const header = { name: name.trim(), value }
    if (!(await save([...others(header.name), header], 'Header saved.'))) return
    setName('')
    setValue('')
  }

  return (
    <Card title="Custom headers">
      <p class="hint">Sent with each request, for example an API key. Values are stored encrypted and never shown.</p>
      {droppedHeaders.length > 0 && (
        <Notice tone="warning">
          The destination moved to another scheme, host or port, so these headers were removed:{' '}
          <span class="mono breakable">{droppedHeaders.join(', ')}</span>. Their values belonged to the previous one.
          Enter the values for the new destination.
        </Notice>
      )}
      {headers.length > 0 && (
        <ul class="entries">
          {headers.map((header) => (
            <li key={header.name}>
              <span class="mono breakable">
                {header.name}: {header.masked}
              </span>
              <IconButton
                icon="close"
                label={`Remove ${header.name}`}
                onClick={() => void save(others(header.name), 'Header removed.')}
              />
            </li>
          ))}
        </ul>
      )}
      <form class="stack" onSubmit={add} noValidate>
        <TextField label="Header name" value={name} maxLength={64} placeholder="Authorization" onChange={setName} />
        <TextField label="Header value" value={value} maxLength={1024} onChange={setValue} />
        <FailureNotice failure={failure} />
        <div class="line">
          <Button type="submit" disabled={busy || name.trim() === '' || value === ''}>
            Save header
          </Button>
        </div>
      </form>
    </Card>
  )
}
