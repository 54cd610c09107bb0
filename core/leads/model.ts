/** Contact data that a visitor left or another service found (specification, section 1). */
export interface Lead {
  leadId: string
  workspaceId: string
  source: string
  fields: Record<string, string>
  conversationId?: string
  formSubmissionId?: string
  /** Session that submitted the form. */
  sessionId?: string
  /** Installation whose form created the lead. */
  publicSiteKey?: string
  createdAt: Date
  /** Key of the form submission that created the lead. A repeated submission has the same key. */
  operationKey?: string
  /**
   * Keyed hashes of the person's contacts. When a person is added to the suppression list, the
   * service finds the leads of that person by these hashes. Leads
   * without contacts have none.
   */
  contacts?: string[]
  inputHash?: string
  /**
   * Ids of the automatic subscriptions that receive the lead. Removed when all its deliveries have
   * been created.
   */
  fanOut?: { subscriptionIds: string[]; since: Date }
}

/** An entry of a workspace's list of people who must not be contacted. */
export interface Suppression {
  /** Keyed hash of workspace, kind and value. The value itself is not stored. */
  suppressionId: string
  workspaceId: string
  kind: 'subject' | 'email' | 'phone'
  addedBy: string
  addedAt: Date
  reason?: string
}

/** Pattern of the allowed names of lead fields. */
export const leadFieldName = /^[A-Za-z0-9_-]{1,64}$/

export interface LeadFanOut {
  /**
   * Returns the automatic subscriptions whose policies cover a new lead. They are stored together
   * with the lead, so that a crash loses no delivery.
   */
  plan(lead: Lead): Promise<Pick<Lead, 'fanOut'>>
  /**
   * Creates the deliveries of a lead. Never throws, because `finish` later creates the deliveries
   * that are missing.
   */
  send(lead: Lead): Promise<void>
  /** Creates the deliveries that crashed processes did not create. */
  finish(): Promise<void>
}
