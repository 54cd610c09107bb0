import { type Core, dateOf, perCore } from '../core.ts'
import { invalid, logFailure, ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { findIds, hasDocument } from '../mongodb/with-id.ts'
import { type PageRequest, readPage } from '../page-token.ts'
import { announcedMaxAgeMs, liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'

/** Key of the cached list, and its id in wake-ups. */
const revokedTokens = 'revoked-tokens'
const tokenIdForm = /^tok_[\w-]{22}$/
const maxPage = 100

const revokedOf = perCore((core) =>
  liveCacheOf<Set<string>>(core, {
    maxEntries: 1,
    maxAgeMs: announcedMaxAgeMs,
    async loadMany() {
      const ids = await findIds(core.db.tokens, { revokedAt: { $exists: true } }, { hint: 'by_revocation' })
      return new Map([[revokedTokens, new Set(ids)]])
    },
  }),
)

/** Rejects a revoked token with `Unauthenticated`. Every core knows of a revocation within a second. */
export async function requireLiveToken(core: Core, tokenId: string, isRoutine = false) {
  if ((await revokedOf(core).get(revokedTokens, isRoutine))?.has(tokenId)) throw new ServiceError('Unauthenticated')
}

/** Notes the use of a verified token without a wait. Errors: `Unauthenticated` if the token is revoked. */
export async function useToken(
  core: Core,
  {
    tokenId,
    subject,
    workspaceId,
    expiresAt,
  }: { tokenId: string; subject: string; workspaceId?: string | undefined; expiresAt: number },
) {
  await requireLiveToken(core, tokenId)
  const used = {
    subject,
    workspaceId,
    ...(Number.isFinite(expiresAt) && { expiresAt: new Date(expiresAt) }),
  }
  storeTokenUse(core, tokenId, used).catch(logFailure(core.logger, 'noting the use of a token failed'))
}

/**
 * Revokes a token, and the links and sessions of the console that it made. When the call resolves, every
 * core refuses it. Errors: `ValidationFailed`; `NotFound` for an unknown token, if the caller is limited
 * to a workspace.
 */
export async function revokeToken(
  core: Core,
  tokenId: string,
  { subject: by, workspaceId }: { subject: string; workspaceId?: string },
) {
  if (!tokenIdForm.test(tokenId)) throw invalid('/tokenId', 'pattern')
  const revocation = { by, at: dateOf(core), workspaceId }
  const isKnown = await wakeupsOf(core).changing([revokedTokens], () => storeRevocation(core, tokenId, revocation))
  if (!isKnown) throw new ServiceError('NotFound')
}

/** Returns tokens by their last use or revocation, newest first. Errors: `ValidationFailed`. */
export function listTokens(core: Core, { workspaceId, ...page }: PageRequest & { workspaceId?: string | undefined }) {
  const filter = workspaceId === undefined ? {} : { workspaceId }
  return readPage(core.db.tokens, filter, {
    list: `tokens ${workspaceId ?? ''}`,
    by: 'listedAt',
    max: maxPage,
    ...page,
  })
}

/** A token that was used or revoked. Contains no secret. */
export interface TokenDocument {
  _id: string
  /** Absent if the token was revoked before its first use. */
  subject?: string
  workspaceId?: string
  lastUsedAt?: Date
  expiresAt?: Date
  revokedAt?: Date
  revokedBy?: string
  /** The time of the last use or of the revocation. */
  listedAt: Date
  removeAt?: Date
}

const dayMs = 86_400_000
/** An invitation may outlive the token that made it by seven days. */
const keptAfterExpiryMs = 8 * dayMs

/** A token without expiry is forgotten a year after its last use. */
async function storeTokenUse(core: Core, tokenId: string, token: Omit<TokenDocument, '_id' | 'listedAt'>) {
  const at = dateOf(core)
  const removeAt = token.expiresAt ? new Date(token.expiresAt.getTime() + keptAfterExpiryMs) : dateOf(core, 365 * dayMs)
  const use = { ...token, removeAt, lastUsedAt: at, listedAt: at }
  const filter = { _id: tokenId, revokedAt: { $exists: false } }
  const { matchedCount } = await core.db.tokens.updateOne(filter, { $set: use })
  if (matchedCount === 0) await insertOnce(core.db.tokens, { _id: tokenId, ...use })
}

/** Revokes a token; with `workspaceId`, only one of this workspace. Returns false if there is none. */
async function storeRevocation(
  core: Core,
  tokenId: string,
  { workspaceId, by, at }: { workspaceId?: string; by: string; at: Date },
) {
  const revoked = { revokedAt: at, revokedBy: by }
  // A token without expiry stays revoked for good.
  const forever = { expiresAt: { $exists: false }, removeAt: { $exists: true } }
  const found = { _id: tokenId, workspaceId }
  await core.db.tokens.updateOne({ ...found, revokedAt: { $exists: false } }, { $set: { ...revoked, listedAt: at } })
  await core.db.tokens.updateOne({ ...found, ...forever }, { $unset: { removeAt: '' } })
  if (await hasDocument(core.db.tokens, found)) return true
  if (workspaceId !== undefined) return false
  // If another process has noted a use meanwhile, the token is revoked by the next call.
  return insertOnce(core.db.tokens, { _id: tokenId, ...revoked, listedAt: at })
}
