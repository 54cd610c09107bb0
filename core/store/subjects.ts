import type { Collection } from 'mongodb'
import { isDuplicateKey } from './faults.ts'

/** A verified visitor on a connection. */
export interface Subject {
  /** A keyed hash of the connection and the host's own id of the visitor. */
  subjectId: string
  workspaceId: string
  connectionId: string
  /** The conversation that the visitor's sessions continue. */
  conversationId: string
}

export type SubjectDocument = Omit<Subject, 'subjectId'> & { _id: string }

export interface SubjectStore {
  find(subjectId: string): Promise<Subject | undefined>
  /** Makes a conversation the subject's, if it still has the one it had (`from`), or none. */
  setConversation(subject: Subject, from: string | undefined): Promise<boolean>
  remove(subjectId: string): Promise<void>
}

export function createSubjectStore({ subjects }: { subjects: Collection<SubjectDocument> }): SubjectStore {
  return {
    async find(subjectId) {
      const found = await subjects.findOne({ _id: subjectId })
      if (!found) return undefined
      const { _id, ...rest } = found
      return { subjectId: _id, ...rest }
    },

    async setConversation({ subjectId, ...rest }, from) {
      if (from !== undefined) {
        const { conversationId } = rest
        const { matchedCount } = await subjects.updateOne(
          { _id: subjectId, conversationId: from },
          { $set: { conversationId } },
        )
        return matchedCount === 1
      }
      try {
        await subjects.insertOne({ _id: subjectId, ...rest })
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
