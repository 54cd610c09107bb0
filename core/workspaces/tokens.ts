import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { type Core, perCore } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import { announcedMaxAgeMs, createLiveCache } from '../wakeups/live-cache.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { createTokenStore, type Token, type TokenStore } from './token-store.ts'

export type Tokens = ReturnType<typeof createTokens>

/** Key of the cached list, and its id in wake-ups. */
const revokedTokens = 'revoked-tokens'
const tokenIdForm = /^tok_[\w-]{22}$/
const maxPage = 100

export const tokensOf = perCore((core) =>
  createTokens(core, { store: createTokenStore(core.db), wakeups: wakeupsOf(core) }),
)

/** The tokens that were used, and those that are revoked. Every core knows a revoked token within a second. */
export function createTokens(
  { bus, logger, now }: Pick<Core, 'bus' | 'logger' | 'now'>,
  { store, wakeups }: { store: TokenStore; wakeups: Pick<Wakeups, 'isCurrent' | 'changing'> },
) {
  const revoked = createLiveCache<Set<string>>({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: 1,
    maxAgeMs: announcedMaxAgeMs,
    loadMany: async () => new Map([[revokedTokens, new Set(await store.revokedIds())]]),
  })

  async function requireLive(tokenId: string): Promise<void> {
    if ((await revoked.get(revokedTokens))?.has(tokenId)) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
  }

  return {
    /** Errors: `Unauthenticated` if the token is revoked. */
    requireLive,

    /**
     * Admits a verified token and notes its use, for which the call does not wait. `expiresAt` is in
     * milliseconds, or infinite. Errors: `Unauthenticated` if it is revoked.
     */
    async use({
      expiresAt,
      workspaceId,
      ...token
    }: {
      tokenId: string
      subject: string
      workspaceId?: string | undefined
      expiresAt: number
    }): Promise<void> {
      await requireLive(token.tokenId)
      const used: Token = {
        ...token,
        ...(workspaceId !== undefined && { workspaceId }),
        ...(Number.isFinite(expiresAt) && { expiresAt: new Date(expiresAt) }),
      }
      store
        .noteUse(used, new Date(now()))
        .catch((error: Error) => logger.warn({ reason: error.name }, 'noting the use of a token failed'))
    },

    /**
     * Revokes a token, with the links and sessions of the console that it made. When the call resolves,
     * every core refuses it. Errors: `ValidationFailed`; `NotFound` for an unknown token, if the caller is
     * limited to a workspace.
     */
    async revoke(tokenId: string, { subject: by, workspaceId }: { subject: string; workspaceId?: string }) {
      if (!tokenIdForm.test(tokenId)) throw invalid('/tokenId', 'pattern')
      const revocation = { by, at: new Date(now()), ...(workspaceId !== undefined && { workspaceId }) }
      const isKnown = await wakeups.changing([revokedTokens], () => store.revoke(tokenId, revocation))
      if (!isKnown) throw new ServiceError(ErrorCode.NOT_FOUND)
    },

    /** Returns a page of tokens, the last used or revoked first. Errors: `ValidationFailed`. */
    async list(query: {
      workspaceId?: string | undefined
      limit?: number | undefined
      pageToken?: string | undefined
    }) {
      const { workspaceId, limit = maxPage, pageToken } = query
      validate(field('/limit', limit, integer(1, maxPage)))
      const place = `tokens ${workspaceId ?? ''}`
      const found = await store.list(workspaceId, limit + 1, readPageToken(place, pageToken))
      return cutPage(found, limit, place, ({ listedAt: at, _id: id }) => ({ at, id }))
    },
  }
}
