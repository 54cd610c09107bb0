import type { Collection } from 'mongodb'
import { insertOnce } from '../mongodb/insert-each.ts'

/** A token that was used or revoked. Contains no secret. */
export interface Token {
  tokenId: string
  /** Name of the token or operator. Absent if the token was revoked before its first use. */
  subject?: string
  workspaceId?: string
  lastUsedAt?: Date
  /** Absent if the token does not expire. */
  expiresAt?: Date
  revokedAt?: Date
  revokedBy?: string
}

/** `listedAt` is the time of the last use or of the revocation. */
export type TokenDocument = { _id: string; listedAt: Date; removeAt?: Date } & Omit<Token, 'tokenId'>

export type TokenStore = ReturnType<typeof createTokenStore>

const dayMs = 86_400_000
/** An invitation may outlive the token that made it by seven days. */
const keptAfterExpiryMs = 8 * dayMs

export const createTokenStore = ({ tokens }: { tokens: Collection<TokenDocument> }) => ({
  /** Stores that a token was used. A token without expiry is forgotten a year after its last use. */
  async noteUse({ tokenId, ...token }: Token, at: Date): Promise<void> {
    const removeAt = token.expiresAt
      ? new Date(token.expiresAt.getTime() + keptAfterExpiryMs)
      : new Date(at.getTime() + 365 * dayMs)
    const use = { ...token, removeAt, lastUsedAt: at, listedAt: at }
    const filter = { _id: tokenId, revokedAt: { $exists: false } }
    const { matchedCount } = await tokens.updateOne(filter, { $set: use })
    if (matchedCount === 0) await insertOnce(tokens, { _id: tokenId, ...use })
  },

  /** Revokes a token. With `workspaceId`, only a token of this workspace. Returns false if it did not find it. */
  async revoke(
    tokenId: string,
    { workspaceId, by, at }: { workspaceId?: string; by: string; at: Date },
  ): Promise<boolean> {
    const revoked = { revokedAt: at, revokedBy: by }
    // A token without expiry stays revoked for good.
    const forever = { expiresAt: { $exists: false }, removeAt: { $exists: true } }
    const found = { _id: tokenId, ...(workspaceId !== undefined && { workspaceId }) }
    await tokens.updateOne({ ...found, revokedAt: { $exists: false } }, { $set: { ...revoked, listedAt: at } })
    await tokens.updateOne({ ...found, ...forever }, { $unset: { removeAt: '' } })
    if (await tokens.findOne(found, { projection: { _id: 1 } })) return true
    if (workspaceId !== undefined) return false
    // If another process has noted a use meanwhile, the token is revoked by the next call.
    return insertOnce(tokens, { _id: tokenId, ...revoked, listedAt: at })
  },

  async revokedIds(): Promise<string[]> {
    const found = tokens.find({ revokedAt: { $exists: true } }, { projection: { _id: 1 }, hint: 'by_revocation' })
    return (await found.toArray()).map(({ _id }) => _id)
  },

  /** Returns tokens, the last used or revoked first, after the given one. */
  async list(
    workspaceId: string | undefined,
    limit: number,
    after?: { at: Date; id: string },
  ): Promise<TokenDocument[]> {
    const older = after && [{ listedAt: { $lt: after.at } }, { listedAt: after.at, _id: { $lt: after.id } }]
    const found = tokens.find({ ...(workspaceId !== undefined && { workspaceId }), ...(older && { $or: older }) })
    return found.sort({ listedAt: -1, _id: -1 }).limit(limit).toArray()
  },
})
