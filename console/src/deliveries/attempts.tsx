import { type DeliveryAttempt, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { When } from '../ui/when.tsx'
import { outcomeText } from './delivery-words.ts'
import { RetryButton } from './retry-button.tsx'
import { StatusTag } from './status-tag.tsx'

/** Shows the attempts of a delivery, latest first, with a retry button if a retry is possible. */
export function Attempts({ attempts, onRetried }: { attempts: DeliveryAttempt[]; onRetried: () => Promise<unknown> }) {
  const latestFirst = attempts.toSorted((one, other) => other.attemptNumber - one.attemptNumber)
  const latest = latestFirst[0]

  return (
    <ol>
      {latestFirst.map((attempt) => (
        <li key={attempt.attemptId} class="attempt">
          <span class="attempt-number">#{attempt.attemptNumber}</span>
          <div class="attempt-text">
            <div class="line">
              <StatusTag status={attempt.status} past={attempt !== latest} />
              <span>{outcomeText(attempt)}</span>
            </div>
            {attempt.responseText && (
              <blockquote class="response-text breakable" dir="auto">
                {attempt.responseText}
              </blockquote>
            )}
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
          {attempt === latest && <RetryButton attempt={attempt} onRetried={onRetried} />}
        </li>
      ))}
    </ol>
  )
}
