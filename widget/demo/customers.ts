import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A person with an account at the shop. */
export interface Customer {
  /** Customer id of the shop, used as the assertion's subject. */
  id: string
  name: string
  plan: string
  orders: number
}

/** Accounts of the demo shop. Signing in needs no password. */
export const customers: readonly Customer[] = [
  { id: 'customer_1042', name: 'Ada Berger', plan: 'Friend of the workshop', orders: 2 },
  { id: 'customer_1107', name: 'Jonas Lindqvist', plan: 'Customer', orders: 1 },
  { id: 'customer_1190', name: 'Mei Tanaka', plan: 'Customer', orders: 0 },
]

export const findCustomer = (id: string | null | undefined): Customer | undefined =>
  customers.find((customer) => customer.id === id)

const cookieName = 'shop_session'
const maxSessions = 10_000

/** Stores the shop's sessions in memory. The chat does not use their cookie. */
export function createShopSessions() {
  const customerIds = new Map<string, string>()

  return {
    /** Returns the signed-in customer, if any. */
    find: (request: IncomingMessage): Customer | undefined => findCustomer(customerIds.get(readCookie(request))),

    /** Signs a customer in, or out. The previous cookie becomes invalid. */
    change(request: IncomingMessage, response: ServerResponse, customer: Customer | undefined) {
      customerIds.delete(readCookie(request))
      const id = customer ? randomBytes(24).toString('base64url') : ''
      if (customer) customerIds.set(id, customer.id)
      if (customerIds.size > maxSessions) customerIds.delete(customerIds.keys().next().value!)
      response.setHeader('Set-Cookie', `${cookieName}=${id}; Path=/; HttpOnly; SameSite=Lax`)
    },
  }
}

function readCookie(request: IncomingMessage) {
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim().split('='))
  return cookies.find(([name]) => name === cookieName)?.[1] ?? ''
}
