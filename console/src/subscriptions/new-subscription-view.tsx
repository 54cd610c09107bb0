import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { CopyOnce, useAction } from '../ui/dialog.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { MappedFields } from './mapped-fields.tsx'
import { destinationProblem } from './subscription-words.ts'

export function NewSubscriptionView() {
  const { api, router } = useConsole()
  const { busy, failure, run } = useAction()
  const [destinationUrl, setDestination] = useState('')
  const [mappedFields, setMapped] = useState<string[]>([])
  const [automatic, setAutomatic] = useState(true)
  const [problem, setProblem] = useState<string>()
  const [created, setCreated] = useState<{ subscriptionId: string; secret: string }>()

  function create(event: Event) {
    event.preventDefault()
    const urlProblem = destinationProblem(destinationUrl.trim())
    setProblem(urlProblem)
    if (urlProblem !== undefined) return
    void run(async () => {
      setCreated(await api.leads.createSubscription({ destinationUrl: destinationUrl.trim(), mappedFields, automatic }))
    })
  }

  return (
    <Page title="New subscription" back={{ path: pathOf({ view: 'subscriptions' }), label: 'Subscriptions' }}>
      <Card title="Destination">
        <form class="stack" onSubmit={create} noValidate>
          <TextField
            label="Destination URL"
            hint="Receives a POST request for each lead. Must resolve to a public address; checked now and at each delivery."
            error={problem}
            inputMode="url"
            required
            maxLength={2048}
            placeholder="https://crm.example.com/hooks/leads"
            value={destinationUrl}
            onChange={setDestination}
          />
          <MappedFields names={mappedFields} onChange={setMapped} />
          <Toggle
            label="Send every lead automatically"
            hint="If off, leads are sent only on request."
            checked={automatic}
            onChange={setAutomatic}
          />
          <FailureNotice failure={failure} />
          <div class="button-row">
            <button type="submit" class="button primary" disabled={busy}>
              Create subscription
            </button>
            <a class="button ghost" href={pathOf({ view: 'subscriptions' })}>
              Cancel
            </a>
          </div>
        </form>
      </Card>
      {created && (
        <CopyOnce
          title="Signing secret"
          label="Secret"
          secret={created.secret}
          onClose={() => router.go(pathOf({ view: 'subscription', subscriptionId: created.subscriptionId }))}
        >
          <p>
            The receiver verifies the signature of each delivery with it. Store it now: it is shown only once. If you
            lose it, rotate it.
          </p>
        </CopyOnce>
      )}
    </Page>
  )
}
