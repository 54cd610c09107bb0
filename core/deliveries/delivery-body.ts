import type { Lead } from '../leads/lead-store.ts'

export const leadEventType = 'lead.ready-for-delivery'
const contractVersion = '1.0'

/**
 * The body of a delivery. It contains only the lead fields that the mapping names (contract,
 * section 5). It is built once and stored, so that each attempt sends the same bytes.
 */
export function deliveryBody(delivery: {
  deliveryId: string
  occurredAt: Date
  lead: Pick<Lead, 'leadId' | 'fields'>
  mappedFields: string[]
}): Uint8Array {
  const { deliveryId, occurredAt, lead, mappedFields } = delivery
  const mapped = mappedFields
    .filter((name) => Object.hasOwn(lead.fields, name))
    .map((name) => [name, lead.fields[name]] as const)
  return new TextEncoder().encode(
    JSON.stringify({
      eventType: leadEventType,
      id: deliveryId,
      contractVersion,
      occurredAt: occurredAt.toISOString(),
      data: Object.fromEntries([['reference', lead.leadId], ...mapped]),
    }),
  )
}
