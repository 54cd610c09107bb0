import type { DeliveryAttempt } from '#proto/lead/v1/delivery_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { Icon } from '../ui/page.tsx'
import { isRetryable } from './delivery-words.ts'

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
  if (!isRetryable(attempt.status)) return null
  async function retry() {
    // The idempotency key stays the same until a response arrives. After a lost response, another
    // click repeats the same retry.
    await api.leads.retryDeliveryAttempt({ attemptId: attempt.attemptId })
    await onRetried()
  }
  return (
    <ActionButton act={retry} done="Retry started.">
      <Icon name="refresh" />
      Retry now{of && <span class="visually-hidden"> {of}</span>}
    </ActionButton>
  )
}
