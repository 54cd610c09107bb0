import { useState } from 'preact/hooks'
import { SubscriptionPurpose } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Page } from '../ui/page.tsx'
import { CopyOnce } from '../ui/secrets.tsx'
import { SubscriptionForm } from './subscription-form.tsx'

export function NewSubscriptionView() {
  const { api, router } = useConsole()
  const [created, setCreated] = useState<{ subscriptionId: string; secret: string }>()
  return (
    <Page title="New subscription" back={{ path: pathOf({ view: 'subscriptions' }), label: 'Subscriptions' }}>
      <SubscriptionForm
        initial={{
          destinationUrl: '',
          mappedFields: [],
          automatic: true,
          purpose: SubscriptionPurpose.LEADS,
          maxPerSecond: 0,
          disableAfterNotFound: 5,
        }}
        action="Create subscription"
        submit={async ({ maxPerSecond, ...input }) =>
          setCreated(await api.leads.createSubscription({ ...input, maxPerSecond: maxPerSecond || undefined }))
        }
      >
        <a class="button ghost" href={pathOf({ view: 'subscriptions' })}>
          Cancel
        </a>
      </SubscriptionForm>
      {created && (
        <CopyOnce
          title="Signing secret"
          label="Secret"
          secret={created.secret}
          advice="The receiver verifies the signature of each delivery with it. Store it now: it is shown only once. If you lose it, rotate it."
          onClose={() => router.go(pathOf({ view: 'subscription', subscriptionId: created.subscriptionId }))}
        />
      )}
    </Page>
  )
}
