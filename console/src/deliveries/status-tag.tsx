import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { deliveryStatuses } from './delivery-words.ts'

/**
 * Shows the status of a delivery or attempt. `past` is true for an attempt that was followed by a
 * later attempt. For such an attempt, the status “retry scheduled” is shown as “Retried”.
 */
export function StatusTag({ status, past = false }: { status: DeliveryStatus; past?: boolean }) {
  const word = deliveryStatuses.get(status)
  if (past && status === DeliveryStatus.RETRY_SCHEDULED) return <span class="tag">Retried</span>
  return <span class={`tag ${word?.tone ?? ''}`}>{word?.text ?? 'Unknown'}</span>
}
