import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import type { ErasureDocument } from '../privacy/erasure-store.ts'
import { openErasures } from '../privacy/open-erasures-store.ts'

/** A verified visitor on a connection. */
export interface Subject {
  /** Keyed hash of the connection and the host's user id. */
  subjectId: string
  workspaceId: string
  connectionId: string
  /** The conversation that the visitor's sessions continue. */
  conversationId: string
}

export type SubjectDocument = Omit<Subject, 'subjectId'> & {
  _id: string
  /** Erasures of the subject under way when it got this conversation. */
  afterErasures?: string[]
}

export interface SubjectStore {
  /**
   * Returns the subject with its conversation, unless an erasure under way removes that
   * conversation.
   */
  find(subjectId: string): Promise<Subject | undefined>
  /** Sets the subject's conversation if the present one is still `from` (or none). */
  setConversation(subject: Subject, from: string | undefined): Promise<boolean>
  remove(subjectId: string): Promise<void>
}

export function createSubjectStore({
  subjects,
  erasures,
}: {
  subjects: Collection<SubjectDocument>
  erasures: Collection<ErasureDocument>
}): SubjectStore {
  return {
    async find(subjectId) {
      // In this order: a conversation set after an erasure began names that erasure.
      const open = await openErasures(erasures, [subjectId])
      const found = await subjects.findOne({ _id: subjectId })
      if (!found) return undefined
      const { _id, afterErasures = [], ...rest } = found
      if (open.every((erasureId) => afterErasures.includes(erasureId))) return { subjectId: _id, ...rest }
      await subjects.deleteOne({ _id, conversationId: rest.conversationId })
      return this.find(subjectId)
    },

    async setConversation({ subjectId, ...rest }, from) {
      const afterErasures = await openErasures(erasures, [subjectId])
      if (from !== undefined) {
        const { conversationId } = rest
        const { matchedCount } = await subjects.updateOne(
          { _id: subjectId, conversationId: from },
          { $set: { conversationId, afterErasures } },
        )
        return matchedCount === 1
      }
      try {
        await subjects.insertOne({ _id: subjectId, ...rest, afterErasures })
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async remove(subjectId) {
      await subjects.deleteOne({ _id: subjectId })
    },
  }
}
