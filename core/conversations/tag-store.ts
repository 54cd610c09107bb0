import type { Collection } from 'mongodb'
import type { ConversationDocument } from './conversation-store.ts'

export interface TagStore {
  /** Returns the tags of the conversations of a workspace whose tags changed last. */
  latest(workspaceId: string, limit: number): Promise<string[][]>
}

export const createTagStore = ({ conversations }: { conversations: Collection<ConversationDocument> }): TagStore => ({
  async latest(workspaceId, limit) {
    const found = await conversations
      .find(
        { workspaceId, 'tags.at': { $exists: true }, erasing: { $exists: false } },
        { projection: { 'tags.names': 1 }, hint: 'by_tag_change' },
      )
      .sort({ 'tags.at': -1 })
      .limit(limit)
      .toArray()
    return found.flatMap(({ tags }) => (tags ? [tags.names] : []))
  },
})
