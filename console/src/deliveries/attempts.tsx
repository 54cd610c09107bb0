import { type DeliveryAttempt, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { When } from '../ui/when.tsx'
import { isRetryable, outcomeText } from './delivery-words.ts'
import { StatusTag } from './status-tag.tsx'

/** Shows the attempts of a delivery, latest first, with a retry button if a retry is possible. */
export function Attempts({ attempts, onRetried }: { attempts: DeliveryAttempt[]; onRetried: () => Promise<unknown> }) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const latestFirst = attempts.toSorted((one, other) => other.attemptNumber - one.attemptNumber)
  const latest = latestFirst[0]

  function retry({ attemptId }: DeliveryAttempt) {
    return run(async () => {
      // The idempotency key stays the same until a response arrives. After a lost response, another
      // click repeats the same retry.
      await api.leads.retryDeliveryAttempt({ attemptId })
      announcer.say('Retry started.')
      await onRetried()
    })
  }

  return (
    <>
      <FailureNotice failure={failure} />
      <ol>
        {latestFirst.map((attempt) => (
          <li key={attempt.attemptId} class="attempt">
            <span class="attempt-number">#{attempt.attemptNumber}</span>
            <div class="attempt-text">
              <div class="line">
                <StatusTag status={attempt.status} past={attempt !== latest} />
                <span>{outcomeText(attempt)}</span>
              </div>
              <p class="hint">
                <When at={attempt.createdAt} full />
                {attempt.durationMs !== undefined && ` · ${attempt.durationMs} ms`}
                {attempt.manual && ' · manual'}
                {attempt === latest && attempt.nextRetryAt && attempt.status === DeliveryStatus.RETRY_SCHEDULED && (
                  <>
                    {' · next attempt '}
                    <When at={attempt.nextRetryAt} full />
                  </>
                )}
              </p>
              <p class="hint">
                Correlation ID <span class="mono breakable">{attempt.correlationId}</span>
              </p>
            </div>
            {attempt === latest && isRetryable(attempt.status) && (
              <Button kind="small" disabled={busy} onClick={() => retry(attempt)}>
                <Icon name="refresh" />
                Retry now
              </Button>
            )}
          </li>
        ))}
      </ol>
    </>
  )
}
