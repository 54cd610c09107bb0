import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import type { ErasureDocument } from '../privacy/erasure-store.ts'
import { openErasures } from '../privacy/open-erasures-store.ts'

/** A verified visitor on a connection. */
export interface Subject {
  /** A keyed hash of the connection and the host's own id of the visitor. */
  subjectId: string
  workspaceId: string
  connectionId: string
  /** The conversation that the visitor's sessions continue. */
  conversationId: string
}

export type SubjectDocument = Omit<Subject, 'subjectId'> & {
  _id: string
  /** Erasures of the subject that were under way when it got this conversation. */
  afterErasures?: string[]
}

export interface SubjectStore {
  /** The subject with its conversation. A conversation that an erasure under way removes is the subject's no more. */
  find(subjectId: string): Promise<Subject | undefined>
  /** Makes a conversation the subject's, if it still has the one it had (`from`), or none. */
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
      // In this order: a conversation that was set after an erasure began says so.
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
