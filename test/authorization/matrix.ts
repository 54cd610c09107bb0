import { randomUUID } from 'node:crypto'
import type { Operation } from '../fuzz/route-cases.ts'
import { routeRequests } from './routes.ts'
import type { Things, World } from './world.ts'

export const WIDGET = '/api/integrations/v1/widget'

/** Somebody who calls: with what, and about whose things. */
interface Party {
  name: string
  /** Undefined: no `Authorization`. */
  token: (world: World) => Promise<string | undefined> | string | undefined
  origin?: string
  /** Whose things the request names; the caller's own otherwise. */
  about?: 'theirs'
}

const ended = Math.floor(Date.now() / 1000) - 60
const mine = ({ mine: { visitor } }: World): string => visitor.session.accessGrant
const otherKey = new Uint8Array(32).fill(5)

/** What can be wrong with a visitor's grant. The last one is right. */
export const visitorParties: Party[] = [
  { name: 'nobody', token: () => undefined },
  { name: 'no token', token: () => 'a.b.c' },
  { name: 'another key', token: (world) => world.forge(mine(world), { key: otherKey }) },
  { name: 'another audience', token: (world) => world.forge(mine(world), { claims: { aud: 'service.workspace' } }) },
  { name: 'another type', token: (world) => world.forge(mine(world), { header: { typ: 'service-token+jwt' } }) },
  { name: 'a workspace session', token: (world) => world.workspaceSession() },
  { name: 'a service token', token: ({ serviceToken }) => serviceToken },
  { name: 'a session that nobody has', token: (world) => world.forge(mine(world), { claims: { sid: 'ses_other' } }) },
  { name: 'another page', token: mine, origin: 'https://evil.example' },
  {
    name: 'a grant of another page',
    token: (world) => world.forge(mine(world), { claims: { org: 'https://evil.example' } }),
  },
  { name: 'a grant that ended', token: (world) => world.forge(mine(world), { claims: { exp: ended } }) },
  { name: 'a closed session', token: ({ over }) => over.closed },
  { name: 'a revoked session', token: ({ over }) => over.revoked },
  { name: 'a banned visitor', token: ({ over }) => over.banned },
  { name: 'a disabled connection', token: ({ over }) => over.disabled },
  { name: 'another session', token: mine, about: 'theirs' },
  { name: 'another workspace', token: ({ elsewhereGrant }) => elsewhereGrant, about: 'theirs' },
  { name: 'itself', token: mine },
]

/** What can be wrong with a workspace session. The last one is right. */
export const operatorParties: Party[] = [
  { name: 'nobody', token: () => undefined },
  { name: 'no token', token: () => 'a.b.c' },
  { name: 'another key', token: ({ workspaceSession }) => workspaceSession({ key: otherKey }) },
  { name: 'another audience', token: ({ workspaceSession }) => workspaceSession({ claims: { aud: 'service.core' } }) },
  { name: 'a visitor’s grant', token: mine },
  { name: 'a service token', token: ({ serviceToken }) => serviceToken },
  { name: 'a session that ended', token: ({ workspaceSession }) => workspaceSession({ claims: { exp: ended } }) },
  {
    name: 'another scope',
    token: ({ workspaceSession }) => workspaceSession({ claims: { scope: 'leads:read leads:write' } }),
  },
  { name: 'another workspace', token: ({ workspaceSession }) => workspaceSession({ claims: { wid: 'ws_other' } }) },
  { name: 'itself', token: ({ workspaceSession }) => workspaceSession() },
]

/** What a party got: a code, or `answered`. */
export type Row = Record<string, string>

/** Of each route, what each party gets. A route whose request names nothing of anybody is not asked about others’ things. */
export async function walkRoutes(
  gatewayUrl: string,
  operations: Operation[],
  world: World,
  wanted: (party: Party) => boolean,
): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>()
  for (const { method, path, description } of operations) {
    const name = `${method} ${path.replace(WIDGET, '')}`
    const requestOf = routeRequests[name]
    if (requestOf === undefined) throw new Error(`${name} is not known to this test`)
    const row: Row = {}
    for (const party of partiesOf(description).filter(wanted)) {
      const { path: target, body, contentType } = requestOf(party.about === 'theirs' ? world.theirs : world.mine)
      if (party.about === 'theirs' && !namesSomebody(requestOf, world)) continue
      const token = await party.token(world)
      row[party.name] = await answerTo(`${gatewayUrl}${target.startsWith('/api/') ? '' : WIDGET}${target}`, {
        method,
        body,
        headers: {
          origin: party.origin ?? world.origin,
          'x-service-widget-version': '1.0',
          'idempotency-key': (body as { clientOperationId?: string })?.clientOperationId ?? randomUUID(),
          ...(body === undefined ? {} : { 'content-type': contentType ?? 'application/json' }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      })
    }
    rows.set(name, row)
  }
  return rows
}

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document says what it says
function partiesOf({ security }: any): Party[] {
  if (security[0]?.workspaceSession) return operatorParties
  if (security[0]?.accessGrant) return visitorParties
  return visitorParties.filter(({ name }) => name === 'nobody' || name === 'another page')
}

function namesSomebody(requestOf: (things: Things) => object, { mine: own, theirs }: World): boolean {
  const ids = /(ses|cmd|scr)_\w+|"renewalToken"/
  return ids.test(JSON.stringify(requestOf(theirs))) && own !== theirs
}

async function answerTo(
  url: string,
  { body, ...rest }: { method: string; body: unknown; headers: Record<string, string> },
): Promise<string> {
  const leave = new AbortController()
  const response = await fetch(url, {
    ...rest,
    ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    signal: leave.signal,
  })
  if (response.status >= 400) return ((await response.json()) as { code: string }).code
  leave.abort()
  return 'answered'
}
