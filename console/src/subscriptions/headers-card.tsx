import { useConsole } from '../console-context.ts'
import { Entries, Form, TextField, useForm } from '../ui/form.tsx'
import { useAction } from '../ui/load.tsx'
import { Card, FailureNotice, Notice } from '../ui/page.tsx'
import type { SubscriptionPart } from './destinations.ts'

/** Shows the names of the custom headers. Values are never shown again. */
export function HeadersCard({ subscription, onChanged }: SubscriptionPart) {
  const { subscriptionId, headers, droppedHeaders } = subscription
  const { api } = useConsole()
  const { failure, run } = useAction()

  /** Saves the list. Headers without a value keep their present value. */
  const save = (next: { name: string; value?: string }[]) =>
    api.leads.updateSubscription({ subscriptionId, headers: { headers: next } }).then(onChanged)
  const others = (removed: string) =>
    headers.filter((header) => header.name !== removed.toLowerCase()).map((header) => ({ name: header.name }))

  const form = useForm({
    start: { name: '', value: '' },
    save: ({ name, value }) => save([...others(name.trim()), { name: name.trim(), value }]),
    done: 'Header saved.',
    clears: true,
  })

  return (
    <Card title="Custom headers">
      <p class="hint">Sent with each request, for example an API key. Values are stored encrypted and never shown.</p>
      {droppedHeaders.length > 0 && (
        <Notice tone="warning">
          The destination moved to another scheme, host or port, so these headers were removed:{' '}
          <code>{droppedHeaders.join(', ')}</code>. Their values belonged to the previous one. Enter the values for the
          new destination.
        </Notice>
      )}
      <Entries
        of={headers.map(({ name, masked }) => [name, `${name}: ${masked}`])}
        onRemove={(name) => run(() => save(others(name)), 'Header removed.')}
      />
      <FailureNotice failure={failure} />
      <Form
        form={form}
        button="Save header"
        kind=""
        disabled={form.draft.name.trim() === '' || form.draft.value === ''}
      >
        <TextField label="Header name" maxLength={64} placeholder="Authorization" {...form.field('name')} />
        <TextField label="Header value" maxLength={1024} {...form.field('value')} />
      </Form>
    </Card>
  )
}
