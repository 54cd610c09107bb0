import { randomInt } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { customerOf } from './customers.ts'
import { isFromOwnPage, readForm } from './form-body.ts'
import type { createAssertionSigner } from './identity-assertions.ts'
import { type ShopSessions, setPieces, signedIn } from './shop-sessions.ts'

interface ShopActionDeps {
  sessions: ShopSessions
  /** Missing where the shop has no identity secret. */
  signAssertion?: ReturnType<typeof createAssertionSigner>
}

type Action = (form: URLSearchParams, request: IncomingMessage, response: ServerResponse) => unknown

/** What the shop's own pages may post. Each form is answered with a redirect, so that a reload repeats nothing. */
export function createShopActions({ sessions, signAssertion }: ShopActionDeps) {
  const actions = new Map<string, Action>([
    [
      '/basket',
      (form, request, response) => {
        const session = sessions.open(request, response)
        const lamp = form.get('lamp') ?? ''
        const isAdded = form.has('add')
        setPieces(session, lamp, isAdded ? (session.basket.get(lamp) ?? 0) + 1 : Number(form.get('pieces')))
        seeOther(response, isAdded && session.basket.has(lamp) ? `/lamp/${lamp}?added` : '/basket')
      },
    ],
    [
      '/checkout',
      (_, request, response) => {
        const session = sessions.open(request, response)
        if (session.basket.size > 0) session.lastOrder = `NL-${randomInt(3_000, 9_000)}`
        session.basket.clear()
        seeOther(response, session.lastOrder === undefined ? '/basket' : '/thanks')
      },
    ],
    [
      '/account/sign-in',
      (form, request, response) => {
        const customer = customerOf(form.get('customer') ?? undefined)
        if (customer) sessions.change(request, response, customer)
        seeOther(response, '/account')
      },
    ],
    [
      '/account/sign-out',
      (_, request, response) => {
        sessions.change(request, response, undefined)
        seeOther(response, '/account')
      },
    ],
    [
      '/identity-assertion',
      async (_, request, response) => {
        const customer = signedIn(sessions.find(request))
        response.setHeader('Cache-Control', 'no-store')
        if (!customer || !signAssertion) return response.writeHead(204).end()
        const assertion = await signAssertion(customer)
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ assertion }))
      },
    ],
  ])

  /** Does what was posted to the path. False where nothing can be. */
  return async (path: string, request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const action = actions.get(path)
    if (!action) return false
    if (!isFromOwnPage(request)) {
      response.writeHead(403, { 'Content-Type': 'text/plain' }).end('Not from here')
      return true
    }
    const form = await readForm(request)
    if (form) await action(form, request, response)
    else response.writeHead(413, { Connection: 'close' }).end()
    return true
  }
}

const seeOther = (response: ServerResponse, place: string) => response.writeHead(303, { Location: place }).end()
