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
  const [made, setMade] = useState<{ subscriptionId: string; secret: string }>()

  function create(event: Event) {
    event.preventDefault()
    const wrong = destinationProblem(destinationUrl.trim())
    setProblem(wrong)
    if (wrong !== undefined) return
    void run(async () => {
      setMade(await api.leads.createSubscription({ destinationUrl: destinationUrl.trim(), mappedFields, automatic }))
    })
  }

  return (
    <Page title="New subscription" back={{ path: pathOf({ view: 'subscriptions' }), label: 'Subscriptions' }}>
      <Card title="Destination">
        <form class="stack" onSubmit={create} noValidate>
          <TextField
            label="Address"
            hint="It gets a POST for each lead. It must be public; where it leads is checked now and at each delivery."
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
            label="Send every lead by itself"
            hint="Otherwise only what you, or a service of yours, asks for."
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
      {made && (
        <CopyOnce
          title="The signing secret"
          label="Secret"
          secret={made.secret}
          onClose={() => router.go(pathOf({ view: 'subscription', subscriptionId: made.subscriptionId }))}
        >
          <p>
            The receiver checks each delivery’s signature with it. Store it there now: it is shown this once. If it is
            lost, rotate it.
          </p>
        </CopyOnce>
      )}
    </Page>
  )
}
