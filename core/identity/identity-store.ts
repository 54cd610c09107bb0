import { createHash } from 'node:crypto'
import type { Core } from '../core.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { openErasures } from '../sessions/session-store.ts'

/** A verified visitor on a connection. */
export interface Subject {
  /** Keyed hash of the connection and the host's user id. */
  subjectId: string
  workspaceId: string
  connectionId: string
  /** Id of the conversation that the visitor's sessions continue. */
  conversationId: string
}

export type SubjectDocument = Omit<Subject, 'subjectId'> & {
  _id: string
  /**
   * Ids of the verified visitor's erasures that were unfinished when the visitor got this
   * conversation.
   */
  afterErasures?: string[]
}

/**
 * Returns the verified visitor with their conversation. Omits the conversation if an unfinished
 * erasure removes it.
 */
export async function findSubject(core: Core, subjectId: string): Promise<Subject | undefined> {
  // Read the erasures before the conversation. A conversation that is set after an erasure
  // began stores the id of that erasure.
  const open = await openErasures(core, [subjectId])
  const found = await core.db.subjects.findOne({ _id: subjectId })
  if (!found) return undefined
  const { _id, afterErasures = [], ...rest } = found
  if (open.every((erasureId) => afterErasures.includes(erasureId))) return { subjectId: _id, ...rest }
  await core.db.subjects.deleteOne({ _id, conversationId: rest.conversationId })
  return findSubject(core, subjectId)
}

/**
 * Sets the conversation of a verified visitor if the stored conversation is `from`. If `from` is
 * undefined, sets it only if none is stored. Otherwise returns false and changes nothing.
 */
export async function setSubjectConversation(
  core: Core,
  { subjectId, ...rest }: Subject,
  from: string | undefined,
): Promise<boolean> {
  const afterErasures = await openErasures(core, [subjectId])
  if (from !== undefined) {
    const { conversationId } = rest
    const { matchedCount } = await core.db.subjects.updateOne(
      { _id: subjectId, conversationId: from },
      { $set: { conversationId, afterErasures } },
    )
    return matchedCount === 1
  }
  return insertOnce(core.db.subjects, { _id: subjectId, ...rest, afterErasures })
}

export async function forgetConversation(core: Core, subjectId: string) {
  await core.db.subjects.deleteOne({ _id: subjectId })
}

export interface NonceDocument {
  _id: string
  /** Operation that used the nonce. */
  operation: string
  expiresAt: Date
}

/**
 * Marks a nonce as used by one operation. The same operation may use the nonce again after its
 * process died. Returns false when another operation has used the nonce. If several operations
 * use a nonce concurrently, exactly one of them succeeds.
 */
export async function consumeNonce(
  core: Core,
  {
    publicSiteKey,
    nonce,
    operation,
    expiresAt,
  }: { publicSiteKey: string; nonce: string; operation: string; expiresAt: Date },
  now: Date,
): Promise<boolean> {
  const _id = createHash('sha256')
    .update(JSON.stringify([publicSiteKey, nonce]))
    .digest('base64url')
  if (await insertOnce(core.db.nonces, { _id, operation, expiresAt })) return true
  // Either this operation has used the nonce before, or the record of the nonce has expired but
  // is not deleted yet.
  const retaken = await core.db.nonces.updateOne(
    { _id, $or: [{ operation }, { expiresAt: { $lte: now } }] },
    { $set: { operation, expiresAt } },
  )
  return retaken.matchedCount === 1
}
