import { type Subscription, SubscriptionPurpose, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { EnabledTag } from '../ui/enabled.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, WhenLoaded } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { disabledText, heldNumber } from './subscription-words.ts'

export function SubscriptionsView() {
  const { api } = useConsole()
  const list = useLoad(async () => (await api.leads.listSubscriptions({})).subscriptions, [])
  const create = (
    <a class="button primary" href={pathOf({ view: 'new-subscription' })}>
      <Icon name="plus" />
      New subscription
    </a>
  )
  return (
    <Page title="Subscriptions" lead="Destinations of leads, and the fields that each one receives." actions={create}>
      <WhenLoaded loaded={list} name="subscriptions">
        {(subscriptions) =>
          subscriptions.length > 0 ? (
            <ul class="table">
              {subscriptions.map((subscription) => (
                <SubscriptionRow key={subscription.subscriptionId} subscription={subscription} />
              ))}
            </ul>
          ) : (
            <Empty icon="subscriptions" title="No subscriptions yet">
              <p>A subscription sends leads to your server. Each request is signed with a shared secret.</p>
              {create}
            </Empty>
          )
        }
      </WhenLoaded>
    </Page>
  )
}

function SubscriptionRow({ subscription }: { subscription: Subscription }) {
  const { subscriptionId, destinationUrl, status, disabledReason, mappedFields, automatic, heldDeliveries } =
    subscription
  const { purpose, maxPerSecond = 0 } = subscription
  const isEnabled = status === SubscriptionStatus.ENABLED
  return (
    <li>
      <a class="table-row" href={pathOf({ view: 'subscription', subscriptionId })}>
        <EnabledTag enabled={isEnabled} />
        <span class="table-main">
          <span class="table-title breakable">{destinationUrl}</span>
          <span class="table-sub ellipsis">
            {!isEnabled && `${disabledText(disabledReason)} `}
            {purpose === SubscriptionPurpose.OPERATIONAL_EVENTS
              ? 'Operational events'
              : `${automatic ? 'Every lead' : 'On request'} · ${mappedFields.join(', ') || 'no fields, only the reference'}`}
            {maxPerSecond > 0 && ` · at most ${maxPerSecond} per second`}
          </span>
        </span>
        {heldDeliveries > 0 && <span class="tag warn">{heldNumber(heldDeliveries)} held</span>}
      </a>
    </li>
  )
}
