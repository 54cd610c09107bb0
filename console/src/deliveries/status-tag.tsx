import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { deliveryStatuses } from './delivery-words.ts'

/** Status of a delivery or attempt. A scheduled retry of an earlier attempt shows as retried. */
export function StatusTag({ status, past = false }: { status: DeliveryStatus; past?: boolean }) {
  const word = deliveryStatuses.get(status)
  if (past && status === DeliveryStatus.RETRY_SCHEDULED) return <span class="tag">Retried</span>
  return <span class={`tag ${word?.tone ?? ''}`}>{word?.text ?? 'Unknown'}</span>
}
