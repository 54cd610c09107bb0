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

export type LeadDocument = Omit<Lead, 'leadId'> & {
  _id: string
  /**
   * Browsers and verified visitors of the lead's conversation. Set when the conversation is
   * removed.
   */
  visitorIds?: string[]
  /**
   * Set while the lead is being removed: the id of the removal, or true if its visitor is erased.
   * Queries then skip the lead.
   */
  erasing?: true | string
  /** Set until the event feed has the capture of the lead. */
  unannounced?: true
}

export const toLead = ({ _id, visitorIds: _, erasing: __, unannounced: ___, ...rest }: LeadDocument): Lead => ({
  leadId: _id,
  ...rest,
})

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

export type SuppressionDocument = Omit<Suppression, 'suppressionId'> & {
  _id: string
  /** True until the waiting deliveries of this person have been ended. */
  unswept?: true
}

/** Pattern of the allowed names of lead fields. */
export const leadFieldName = /^[A-Za-z0-9_-]{1,64}$/
