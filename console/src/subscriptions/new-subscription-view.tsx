import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { backTo, pathOf } from '../router.ts'
import { CopyOnce } from '../ui/dialog.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Page } from '../ui/page.tsx'
import { formFields, ofLead } from './policy-fields.tsx'
import { SubscriptionForm, type SubscriptionInput } from './subscription-form.tsx'

/** Form for a new lead subscription, with the fields of the installations' forms, or for a new hook. */
export function NewSubscriptionView({ view }: { view: 'new-subscription' | 'new-hook' }) {
  const isHook = view === 'new-hook'
  const { api, router } = useConsole()
  const [created, setCreated] = useState<{ subscriptionId: string; secret: string }>()
  // Without the scope to read installations, the form begins without fields.
  const loaded = useLoad(async () => {
    const found = isHook ? undefined : await api.workspaces.listInstallations({}).catch(() => undefined)
    return formFields(found?.installations ?? [])
  }, [isHook])

  async function submit({ fields, policy, automatic, ...input }: SubscriptionInput) {
    const settings = {
      destinationUrl: input.destinationUrl.trim(),
      name: input.name.trim(),
      maxPerSecond: Number(input.maxPerSecond) || undefined,
      disableAfterNotFound: Number(input.disableAfterNotFound),
    }
    if (!isHook)
      return setCreated(await api.leads.createSubscription({ ...settings, mappedFields: fields, automatic, policy }))
    const { hookId: subscriptionId, secret } = await api.hooks.createHook({ ...settings, eventTypes: policy.types })
    setCreated({ subscriptionId, secret })
  }

  return (
    <Page title={isHook ? 'New event hook' : 'New destination'} back={backTo('subscriptions')}>
      <WhenLoaded loaded={loaded} what="form fields">
        {(fields) => (
          <SubscriptionForm
            isHook={isHook}
            initial={{
              name: '',
              destinationUrl: '',
              fields,
              automatic: !isHook,
              policy: { types: isHook ? [] : [ofLead], sources: [], installations: [] },
              maxPerSecond: '',
              disableAfterNotFound: '5',
            }}
            action={isHook ? 'Create event hook' : 'Create destination'}
            submit={submit}
          >
            <a class="button ghost" href={pathOf({ view: 'subscriptions' })}>
              Cancel
            </a>
          </SubscriptionForm>
        )}
      </WhenLoaded>
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
