import { randomUUID } from 'node:crypto'
import type { Operation } from '../fuzz/route-cases.ts'
import { routeRequests } from './routes.ts'
import type { Things, World } from './world.ts'

export const WIDGET = '/api/integrations/v1/widget'

/** A caller: its credential, and whose resources its requests name. */
interface Party {
  name: string
  /** Undefined: no `Authorization` header. */
  token: (world: World) => Promise<string | undefined> | string | undefined
  origin?: string
  /** Whose resources the request names; the caller's own by default. */
  about?: 'theirs'
}

const expiredAt = Math.floor(Date.now() / 1000) - 60
const mine = ({ mine: { visitor } }: World): string => visitor.session.accessGrant
const otherKey = new Uint8Array(32).fill(5)

/** Callers of visitors' routes. Only the last one is authorized. */
export const visitorParties: Party[] = [
  { name: 'no credential', token: () => undefined },
  { name: 'a malformed token', token: () => 'a.b.c' },
  { name: 'another key', token: (world) => world.forge(mine(world), { key: otherKey }) },
  { name: 'another audience', token: (world) => world.forge(mine(world), { claims: { aud: 'service.workspace' } }) },
  { name: 'another type', token: (world) => world.forge(mine(world), { header: { typ: 'service-token+jwt' } }) },
  { name: 'a workspace session', token: (world) => world.workspaceSession() },
  { name: 'a service token', token: ({ serviceToken }) => serviceToken },
  { name: 'an unknown session', token: (world) => world.forge(mine(world), { claims: { sid: 'ses_other' } }) },
  { name: 'another origin', token: mine, origin: 'https://evil.example' },
  {
    name: 'a grant for another origin',
    token: (world) => world.forge(mine(world), { claims: { org: 'https://evil.example' } }),
  },
  { name: 'an expired grant', token: (world) => world.forge(mine(world), { claims: { exp: expiredAt } }) },
  { name: 'a closed session', token: ({ ended }) => ended.closed },
  { name: 'a revoked session', token: ({ ended }) => ended.revoked },
  { name: 'a banned visitor', token: ({ ended }) => ended.banned },
  { name: 'a disabled connection', token: ({ ended }) => ended.disabled },
  { name: 'another session', token: mine, about: 'theirs' },
  { name: 'another workspace', token: ({ elsewhereGrant }) => elsewhereGrant, about: 'theirs' },
  { name: 'itself', token: mine },
]

/** Callers of operators' routes. Only the last one is authorized. */
export const operatorParties: Party[] = [
  { name: 'no credential', token: () => undefined },
  { name: 'a malformed token', token: () => 'a.b.c' },
  { name: 'another key', token: ({ workspaceSession }) => workspaceSession({ key: otherKey }) },
  { name: 'another audience', token: ({ workspaceSession }) => workspaceSession({ claims: { aud: 'service.core' } }) },
  { name: 'a visitor’s grant', token: mine },
  { name: 'a service token', token: ({ serviceToken }) => serviceToken },
  { name: 'an expired session', token: ({ workspaceSession }) => workspaceSession({ claims: { exp: expiredAt } }) },
  {
    name: 'another scope',
    token: ({ workspaceSession }) => workspaceSession({ claims: { scope: 'leads:read leads:write' } }),
  },
  { name: 'another workspace', token: ({ workspaceSession }) => workspaceSession({ claims: { wid: 'ws_other' } }) },
  { name: 'itself', token: ({ workspaceSession }) => workspaceSession() },
]

/** Result by party: an error code or `answered`. */
export type Row = Record<string, string>

/**
 * Calls each route as each party. Skips calls about another visitor's resources if the route's
 * request names none.
 */
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
    if (requestOf === undefined) throw new Error(`${name} has no request in routes.ts`)
    const row: Row = {}
    for (const party of partiesOf(description).filter(wanted)) {
      const { path: target, body, contentType } = requestOf(party.about === 'theirs' ? world.theirs : world.mine)
      if (party.about === 'theirs' && !namesResources(requestOf, world)) continue
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

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is untyped
function partiesOf({ security }: any): Party[] {
  if (security[0]?.workspaceSession) return operatorParties
  if (security[0]?.accessGrant) return visitorParties
  return visitorParties.filter(({ name }) => name === 'no credential' || name === 'another origin')
}

function namesResources(requestOf: (things: Things) => object, { mine: own, theirs }: World): boolean {
  const ids = /(ses|cmd|scr)_\w+|"renewalToken"/
  return ids.test(JSON.stringify(requestOf(theirs))) && own !== theirs
}

async function answerTo(
  url: string,
  { body, ...rest }: { method: string; body: unknown; headers: Record<string, string> },
): Promise<string> {
  const abort = new AbortController()
  const response = await fetch(url, {
    ...rest,
    body: body instanceof Uint8Array ? body : JSON.stringify(body),
    signal: abort.signal,
  })
  if (response.status >= 400) return ((await response.json()) as { code: string }).code
  abort.abort()
  return 'answered'
}
