import type { Hook } from '#proto/hook/v1/hook_pb.js'
import { type Subscription, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { fieldWord } from '../leads/lead-titles.ts'
import { areaName, pathOf } from '../router.ts'
import { EnabledTag } from '../ui/dialog.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Empty, Icon, Page, RowText } from '../ui/page.tsx'
import { listSubscriptions, nameOf } from './destinations.ts'
import { ofLead } from './policy-fields.tsx'
import { countOfDeliveries, disabledText, eventText } from './subscription-words.ts'

export function SubscriptionsView() {
  const { api } = useConsole()
  const list = useLoad(() => listSubscriptions(api), [])
  return (
    <Page
      title={areaName('subscriptions')}
      lead="Where leads and events are sent, and what each one receives."
      actions={
        <>
          <a class="button" href={pathOf({ view: 'new-hook' })}>
            <Icon name="plus" />
            New event hook
          </a>
          <a class="button primary" href={pathOf({ view: 'new-subscription' })}>
            <Icon name="plus" />
            New destination
          </a>
        </>
      }
    >
      <WhenLoaded loaded={list} what="destinations">
        {({ subscriptions, hooks }) =>
          subscriptions.length + hooks.length > 0 ? (
            <>
              <ul class="table">
                {subscriptions.map((each) => (
                  <Row key={each.subscriptionId} id={each.subscriptionId} destination={each} text={textOf(each)} />
                ))}
              </ul>
              {hooks.length > 0 && <h2>Event hooks</h2>}
              <ul class="table">
                {hooks.map((each) => (
                  <Row
                    key={each.hookId}
                    id={each.hookId}
                    destination={each}
                    text={each.eventTypes.map(eventText).join(', ')}
                  />
                ))}
              </ul>
            </>
          ) : (
            <Empty icon="subscriptions" title="No destinations yet">
              <p>A destination gets leads on your server. Each request is signed with a shared secret.</p>
              <p>An event hook sends events of conversations, leads and destinations.</p>
            </Empty>
          )
        }
      </WhenLoaded>
    </Page>
  )
}

function textOf({ mappedFields, automatic, policy }: Subscription) {
  const types = policy?.types ?? []
  return [
    automatic && types.includes(ofLead) ? 'Every lead' : 'On request',
    mappedFields.map(fieldWord).join(', ') || 'no fields, only the reference',
    ...types.filter((type) => type !== ofLead).map(eventText),
  ].join(' · ')
}

function Row({ id, destination, text }: { id: string; destination: Subscription | Hook; text: string }) {
  const { name, destinationUrl, status, disabledReason, heldDeliveries, maxPerSecond = 0 } = destination
  const isEnabled = status === SubscriptionStatus.ENABLED
  return (
    <li>
      <a class="table-row" href={pathOf({ view: 'subscription', subscriptionId: id })}>
        <EnabledTag enabled={isEnabled} />
        <RowText title={nameOf(destination)}>
          {!isEnabled && `${disabledText(disabledReason)} `}
          {name && `${destinationUrl} · `}
          {text}
          {maxPerSecond > 0 && ` · at most ${maxPerSecond} per second`}
        </RowText>
        {heldDeliveries > 0 && <span class="tag warn">{countOfDeliveries(heldDeliveries, '# waiting')}</span>}
      </a>
    </li>
  )
}
