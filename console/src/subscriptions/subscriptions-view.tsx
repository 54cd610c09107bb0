import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { disabledText } from './subscription-words.ts'

export function SubscriptionsView() {
  const { api } = useConsole()
  const list = useLoad(async () => (await api.leads.listSubscriptions({})).subscriptions, [])
  return (
    <Page
      title="Subscriptions"
      lead="Destinations of leads, and the fields that each one receives."
      actions={
        <a class="button primary" href={pathOf({ view: 'new-subscription' })}>
          <Icon name="plus" />
          New subscription
        </a>
      }
    >
      <FailureNotice failure={list.failure} retry={() => void list.reload()} />
      {!list.value && list.loading && <Loading label="Loading subscriptions" />}
      {list.value?.length === 0 && (
        <Empty icon="subscriptions" title="No subscriptions yet">
          <p>A subscription sends leads to your server. Each request is signed with a shared secret.</p>
          <a class="button primary" href={pathOf({ view: 'new-subscription' })}>
            New subscription
          </a>
        </Empty>
      )}
      {list.value && list.value.length > 0 && (
        <ul class="table">
          {list.value.map(
            ({ subscriptionId, destinationUrl, status, disabledReason, mappedFields, automatic, heldDeliveries }) => (
              <li key={subscriptionId}>
                <a class="table-row" href={pathOf({ view: 'subscription', subscriptionId })}>
                  {status === SubscriptionStatus.ENABLED ? (
                    <span class="tag ok">Enabled</span>
                  ) : (
                    <span class="tag bad">Disabled</span>
                  )}
                  <span class="table-main">
                    <span class="table-title breakable">{destinationUrl}</span>
                    <span class="table-sub">
                      {status === SubscriptionStatus.DISABLED && `${disabledText(disabledReason)} `}
                      {automatic ? 'Every lead' : 'On request'}
                      {' · '}
                      {mappedFields.length > 0 ? mappedFields.join(', ') : 'no fields, only the reference'}
                    </span>
                  </span>
                  {heldDeliveries > 0 && <span class="tag warn">{heldDeliveries} held</span>}
                </a>
              </li>
            ),
          )}
        </ul>
      )}
    </Page>
  )
}
