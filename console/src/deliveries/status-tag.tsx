import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { deliveryStatuses } from './delivery-words.ts'

/** Of an attempt in the past, «will be retried» has come true. */
export function StatusTag({ status, past = false }: { status: DeliveryStatus; past?: boolean }) {
  const word = deliveryStatuses.get(status)
  if (past && status === DeliveryStatus.RETRY_SCHEDULED) return <span class="tag">Retried</span>
  return <span class={`tag ${word?.tone ?? ''}`}>{word?.text ?? 'Unknown'}</span>
}
