import type { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { deliveryStatuses } from './delivery-words.ts'

export function StatusTag({ status }: { status: DeliveryStatus }) {
  const word = deliveryStatuses.get(status)
  return <span class={`tag ${word?.tone ?? ''}`}>{word?.text ?? 'Unknown'}</span>
}
