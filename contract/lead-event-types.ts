import type { DeliveryEventType } from './event-kinds.ts'

/** Kinds that a lead subscription may send. The first is sent by default (contract, section 7 rule 14). */
export const leadEventTypes = [
  'lead.ready-for-delivery',
  'lead.captured',
  'lead.delivered',
  'lead.delivery-failed',
  'message.unseen',
] as const satisfies DeliveryEventType[]
