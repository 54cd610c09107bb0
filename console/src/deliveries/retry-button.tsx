import type { DeliveryAttempt } from '#proto/lead/v1/delivery_pb.js'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
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
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  if (!isRetryable(attempt.status)) return null

  const retry = () =>
    run(async () => {
      // The idempotency key stays the same until a response arrives. After a lost response, another
      // click repeats the same retry.
      await api.leads.retryDeliveryAttempt({ attemptId: attempt.attemptId })
      announcer.say('Retry started.')
      await onRetried()
    })

  return (
    <>
      <FailureNotice failure={failure} />
      <Button kind="small" disabled={busy} onClick={retry}>
        <Icon name="refresh" />
        Retry now{of && <span class="visually-hidden"> {of}</span>}
      </Button>
    </>
  )
}
