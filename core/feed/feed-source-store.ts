import type { Collection, Document } from 'mongodb'
import type { Lead } from '../leads/model.ts'

export interface FeedConversation {
  conversationId: string
  workspaceId: string
  createdAt: Date
  /** True once the erasure of its visitor has begun. */
  isErased: boolean
}

/**
 * Reads what entries refer to. A removal of old data may hide a conversation or a lead and show it
 * again. So these reads also return hidden ones; otherwise a reader would miss their events. Leads of
 * erased visitors are left out.
 */
export interface FeedSourceStore {
  conversations(conversationIds: string[]): Promise<FeedConversation[]>
  leads(leadIds: string[]): Promise<Lead[]>
}

interface StoredConversation extends Document {
  _id: string
  workspaceId: string
  createdAt: Date
  erasing?: true | string
}

type StoredLead = Omit<Lead, 'leadId'> & { _id: string; erasing?: true | string }

/** The collections have the type `object`, because this module needs only some of their fields. */
export function createFeedSourceStore(collections: { conversations: object; leads: object }): FeedSourceStore {
  const conversations = collections.conversations as Collection<StoredConversation>
  const leads = collections.leads as Collection<StoredLead>
  const projection = { workspaceId: 1, createdAt: 1, erasing: 1 }

  return {
    async conversations(conversationIds) {
      if (conversationIds.length === 0) return []
      const found = await conversations.find({ _id: { $in: conversationIds } }, { projection }).toArray()
      return found.map(({ _id, workspaceId, createdAt, erasing }) => ({
        conversationId: _id,
        workspaceId,
        createdAt,
        isErased: erasing === true,
      }))
    },

    async leads(leadIds) {
      if (leadIds.length === 0) return []
      const fields = {
        workspaceId: 1,
        source: 1,
        fields: 1,
        conversationId: 1,
        formSubmissionId: 1,
        publicSiteKey: 1,
        createdAt: 1,
      }
      const theirs = { _id: { $in: leadIds }, erasing: { $ne: true as const } }
      const found = await leads.find(theirs, { projection: fields }).toArray()
      return found.map(({ _id, ...lead }) => ({ leadId: _id, ...lead }))
    },
  }
}
