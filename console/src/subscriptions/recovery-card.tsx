import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { useState } from 'preact/hooks'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { periods } from '../deliveries/deliveries-view.tsx'
import { hoursAgo } from '../time.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { SelectField } from '../ui/form.tsx'
import { Card, Notice, When } from '../ui/page.tsx'
import type { SubscriptionPart } from './destinations.ts'
import { countOfDeliveries } from './subscription-words.ts'

/** Counts the failed deliveries of a period, and sends them again after a confirmation. */
export function RecoveryCard({ subscription, onChanged }: SubscriptionPart) {
  const { subscriptionId, recovery, status } = subscription
  const { api } = useConsole()
  const [hours, setHours] = useState('24')
  const [counted, setCounted] = useState<{ count: number; since: Timestamp }>()

  async function count() {
    const since = hoursAgo(Number(hours))
    const found = await api.leads.recoverDeliveries({ subscriptionId, since, preview: true })
    setCounted({ count: found.count, since })
  }
  async function recover(since: Timestamp) {
    await api.leads.recoverDeliveries({ subscriptionId, since })
    setCounted(undefined)
    await onChanged()
  }

  return (
    <Card title="Send failed deliveries again">
      <p class="hint">Includes deliveries that failed, were given up, or wait. Each keeps its ID.</p>
      {recovery && (
        <p class="hint">
          Last recovery: <When at={recovery.requestedAt} full />, {recovery.recovered} scheduled,{' '}
          {recovery.finishedAt ? <>finished</> : <>running</>}.
        </p>
      )}
      <div class="bar">
        <SelectField
          label="Created"
          value={hours}
          options={periods}
          onChange={(value) => {
            setHours(value)
            setCounted(undefined)
          }}
        />
        <ActionButton kind="" act={count} text="Count deliveries" />
      </div>
      <div role="status">
        {counted && (
          <Notice
            tone="info"
            action={
              counted.count > 0 &&
              status === SubscriptionStatus.ENABLED && (
                <ActionButton
                  kind="primary"
                  act={() => recover(counted.since)}
                  done="Recovery started."
                  text="Send again"
                />
              )
            }
          >
            {countOfDeliveries(counted.count, '# delivery can be sent again.', '# deliveries can be sent again.')}
            {status !== SubscriptionStatus.ENABLED && ' Enable the destination first.'}
          </Notice>
        )}
      </div>
    </Card>
  )
}
