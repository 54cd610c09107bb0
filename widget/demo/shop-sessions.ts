import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { lampOf } from './catalogue.ts'
import { type Customer, customerOf } from './customers.ts'

const cookieName = 'shop_session'
const sessionsAtMost = 10_000
const piecesAtMost = 9

/** What the shop remembers of one browser. */
export interface ShopSession {
  customerId?: string
  /** Pieces by lamp. */
  basket: Map<string, number>
  /** The number of the order that was placed last. */
  lastOrder?: string
}

export type ShopSessions = ReturnType<typeof createShopSessions>

/**
 * The shop's own sessions, by a cookie of its own that has nothing to do with the chat. They live in memory: a restarted shop
 * has forgotten its customers, which for a demonstration is a feature. The oldest go when there are too many.
 */
export function createShopSessions() {
  const sessions = new Map<string, ShopSession>()

  return {
    /** The browser's session, if it has one. */
    find: (request: IncomingMessage): ShopSession | undefined => sessions.get(cookieOf(request)),

    /** The browser's session; a new one, with its cookie, where there is none. */
    open(request: IncomingMessage, response: ServerResponse): ShopSession {
      return sessions.get(cookieOf(request)) ?? begin(response, { basket: new Map() })
    },

    /** Another person than before: the same basket under a new name, so that nobody goes on with an old cookie. */
    change(request: IncomingMessage, response: ServerResponse, customer: Customer | undefined): ShopSession {
      const before = sessions.get(cookieOf(request))
      sessions.delete(cookieOf(request))
      return begin(response, { basket: customer && before ? before.basket : new Map(), customerId: customer?.id })
    },
  }

  function begin(response: ServerResponse, session: ShopSession): ShopSession {
    const id = randomBytes(24).toString('base64url')
    sessions.set(id, session)
    if (sessions.size > sessionsAtMost) sessions.delete(sessions.keys().next().value!)
    response.setHeader('Set-Cookie', `${cookieName}=${id}; Path=/; HttpOnly; SameSite=Lax`)
    return session
  }
}

export const signedIn = (session: ShopSession | undefined): Customer | undefined => customerOf(session?.customerId)

export const piecesIn = (session: ShopSession | undefined): number =>
  [...(session?.basket.values() ?? [])].reduce((sum, pieces) => sum + pieces, 0)

/** Puts so many pieces of a lamp into the basket, none of them for 0. What the shop does not have is left out. */
export function setPieces({ basket }: ShopSession, lampId: string, pieces: number) {
  if (!lampOf(lampId) || !Number.isInteger(pieces)) return
  if (pieces <= 0) basket.delete(lampId)
  else basket.set(lampId, Math.min(pieces, piecesAtMost))
}

function cookieOf(request: IncomingMessage): string {
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim().split('='))
  return cookies.find(([name]) => name === cookieName)?.[1] ?? ''
}
