// Written by `npm run make -- events` from contract/event-kinds.ts.

/** The data of each kind of event. Later versions of the service add kinds and fields. */
export interface EventData {
  /** Sent when a lead is delivered. */
  'lead.ready-for-delivery': {
    /** The lead. */ reference: string
    [field: string]: string
  }
  /** Sent when a subscription was disabled. */
  'subscription.disabled': {
    /** The subscription. */ reference: string
    subscriptionId: string
    reason: 'operator' | 'rejected_auth' | 'gone' | 'failing'
  }
  /** Sent when the first dead letter of a subscription since its last success. */
  'lead.delivery-failed': {
    /** The delivery. */ reference: string
    subscriptionId: string
    deliveryId: string
  }
}

/** The version of each kind that this package knows. */
export const knownVersions: Record<keyof EventData, string> = {
  'lead.ready-for-delivery': '1.0',
  'subscription.disabled': '1.0',
  'lead.delivery-failed': '1.0',
}
