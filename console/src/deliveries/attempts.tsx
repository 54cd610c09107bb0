import { type DeliveryAttempt, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { When } from '../ui/page.tsx'
import { isRetryable, outcomeText, wordOf } from './delivery-words.ts'

export const latestFirst = (attempts: DeliveryAttempt[]) =>
  attempts.toSorted((one, other) => other.attemptNumber - one.attemptNumber)

/** Shows the attempts of a delivery, the latest first, with a retry button if a retry is possible. */
export function Attempts({ attempts, onRetried }: { attempts: DeliveryAttempt[]; onRetried: () => Promise<unknown> }) {
  const sorted = latestFirst(attempts)
  const [latest] = sorted
  return (
    <ol>
      {sorted.map((attempt) => (
        <li key={attempt.attemptId} class="attempt">
          <span class="attempt-number">{outcomeText(attempt) && `#${attempt.attemptNumber}`}</span>
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
            <details>
              <summary>More</summary>
              ID for support <code>{attempt.correlationId}</code>
            </details>
          </div>
          {attempt === latest && <RetryButton attempt={attempt} onRetried={onRetried} />}
        </li>
      ))}
    </ol>
  )
}

/** Shows a status. `past`: a later attempt followed, so “retry scheduled” is shown as “Retried”. */
export function StatusTag({ status, past, tries = 0 }: { status: DeliveryStatus; past?: boolean; tries?: number }) {
  const [text, tone] = wordOf(status) ?? ['Unknown', '']
  if (past && status === DeliveryStatus.RETRY_SCHEDULED) return <span class="tag">Retried</span>
  return (
    <span class={`tag ${tone}`}>
      {text}
      {status === DeliveryStatus.DEAD_LETTERED && tries > 1 && ` after ${tries} tries`}
    </span>
  )
}

interface RetryButtonProps {
  /** The latest attempt of the delivery. */
  attempt: DeliveryAttempt
  /** What the button retries, for screen readers. Needed if a page has several buttons. */
  of?: string
  onRetried: () => Promise<unknown>
}

/** Button that retries a failed delivery. Shows nothing if a retry is not possible. */
export function RetryButton({ attempt, of, onRetried }: RetryButtonProps) {
  const { api } = useConsole()
  if (!isRetryable(attempt)) return null
  const { attemptId } = attempt
  return (
    <ActionButton
      icon="refresh"
      act={() => api.leads.retryDeliveryAttempt({ attemptId }).then(onRetried)}
      done="Retry started."
    >
      Retry now{of && <span class="visually-hidden"> {of}</span>}
    </ActionButton>
  )
}
