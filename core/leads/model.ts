import type { ConversationContact } from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'

/** Contact data that a visitor left or another service found (specification, section 1). */
export interface Lead {
  leadId: string
  workspaceId: string
  source: string
  fields: Record<string, string>
  conversationId?: string
  formSubmissionId?: string
  /** The session that submitted the form. */
  sessionId?: string
  /** The installation whose form created the lead. */
  publicSiteKey?: string
  createdAt: Date
  /** Key of the form's submission. A repeat has the same key. */
  operationKey?: string
  /** Keyed hashes of the contacts, by which a suppression finds the leads of a person. */
  contacts?: string[]
  inputHash?: string
  /** The automatic subscriptions that receive the lead, until its deliveries exist. */
  fanOut?: { subscriptionIds: string[]; since: Date }
}

/** Contact data of a lead, which nobody has verified. */
export type Contact = ProtoFields<ConversationContact>

export type LeadDocument = Omit<Lead, 'leadId'> & {
  _id: string
  /** Visitors of the lead's conversation. Set when the conversation is removed. */
  visitorIds?: string[]
  /** Id of the removal that hides the lead, or true if its visitor is erased. Queries skip the lead. */
  erasing?: true | string
  /** Set until the event feed has the capture of the lead. */
  unannounced?: true
}

export const toLead = ({ _id, visitorIds: _, erasing: __, unannounced: ___, ...rest }: LeadDocument): Lead => ({
  leadId: _id,
  ...rest,
})

export interface Suppression {
  /** Keyed hash of workspace, kind and value. The value is not stored. */
  _id: string
  workspaceId: string
  kind: 'subject' | 'email' | 'phone'
  addedBy: string
  addedAt: Date
  reason?: string
  /** Set until the waiting deliveries of this person have been ended. */
  unswept?: true
}
