import { randomUUID } from 'node:crypto'
import type { Operation } from '../fuzz/route-cases.ts'
import type { Fixtures, VisitorResources } from './fixtures.ts'
import { routeRequests } from './routes.ts'

export const WIDGET = '/api/integrations/v1/widget'

/** A kind of caller, with its credential and the visitor whose resources its requests name. */
interface Caller {
  name: string
  /** Returns the credential, or undefined for a request without an `Authorization` header. */
  token: (fixtures: Fixtures) => Promise<string | undefined> | string | undefined
  origin?: string
  /** Set if the requests name resources of another visitor. Default: the requests name the caller's own resources. */
  resourcesOf?: 'theirs'
  /** Exceptions: routes that also accept this caller. */
  acceptedBy?: readonly string[]
}

const expiredAt = Math.floor(Date.now() / 1000) - 60
const mine = ({ mine: { visitor } }: Fixtures): string => visitor.session.accessGrant
const otherKey = new Uint8Array(32).fill(5)

/** Callers of the routes for visitors. Only the last caller is authorized, except for the routes in `acceptedBy`. */
export const visitorCallers: Caller[] = [
  { name: 'no credential', token: () => undefined },
  { name: 'a malformed token', token: () => 'a.b.c' },
  { name: 'another key', token: (fixtures) => fixtures.forge(mine(fixtures), { key: otherKey }) },
  {
    name: 'another audience',
    token: (fixtures) => fixtures.forge(mine(fixtures), { claims: { aud: 'service.workspace' } }),
  },
  {
    name: 'another type',
    token: (fixtures) => fixtures.forge(mine(fixtures), { header: { typ: 'service-token+jwt' } }),
  },
  { name: 'a workspace session', token: (fixtures) => fixtures.workspaceSession() },
  { name: 'a service token', token: ({ serviceToken }) => serviceToken },
  { name: 'an unknown session', token: (fixtures) => fixtures.forge(mine(fixtures), { claims: { sid: 'ses_other' } }) },
  { name: 'another origin', token: mine, origin: 'https://evil.example' },
  {
    name: 'a grant for another origin',
    token: (fixtures) => fixtures.forge(mine(fixtures), { claims: { org: 'https://evil.example' } }),
  },
  {
    name: 'an expired grant',
    token: (fixtures) => fixtures.forge(mine(fixtures), { claims: { exp: expiredAt } }),
    acceptedBy: ['POST /sessions/renew'],
  },
  { name: 'a closed session', token: ({ ended }) => ended.closed },
  { name: 'a revoked session', token: ({ ended }) => ended.revoked },
  { name: 'a banned visitor', token: ({ ended }) => ended.banned },
  { name: 'a disabled connection', token: ({ ended }) => ended.disabled },
  { name: 'another session', token: mine, resourcesOf: 'theirs' },
  { name: 'another workspace', token: ({ elsewhereGrant }) => elsewhereGrant, resourcesOf: 'theirs' },
  { name: 'itself', token: mine },
]

/** Callers of the routes for operators. Only the last caller is authorized. */
export const operatorCallers: Caller[] = [
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

/** Result of one route or RPC method by caller: an error code, or `answered` for success. */
export type Row = Record<string, string>

/**
 * Calls each route as each kind of caller. Skips callers with `resourcesOf: 'theirs'` if the
 * route's request names no resource.
 */
export async function walkRoutes(
  gatewayUrl: string,
  operations: Operation[],
  fixtures: Fixtures,
  wanted: (caller: Caller, route: string) => boolean,
): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>()
  for (const { method, path, description } of operations) {
    const name = `${method} ${path.replace(WIDGET, '')}`
    const requestOf = routeRequests[name]
    if (requestOf === undefined) throw new Error(`${name} has no request in routes.ts`)
    const row: Row = {}
    for (const caller of callersOf(description).filter((each) => wanted(each, name))) {
      const {
        path: target,
        body,
        contentType,
      } = requestOf(caller.resourcesOf === 'theirs' ? fixtures.theirs : fixtures.mine)
      if (caller.resourcesOf === 'theirs' && !namesResources(requestOf, fixtures)) continue
      const token = await caller.token(fixtures)
      row[caller.name] = await answerTo(`${gatewayUrl}${target.startsWith('/api/') ? '' : WIDGET}${target}`, {
        method,
        body,
        headers: {
          origin: caller.origin ?? fixtures.origin,
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
function callersOf({ security }: any): Caller[] {
  if (security[0]?.workspaceSession) return operatorCallers
  if (security[0]?.accessGrant) return visitorCallers
  return visitorCallers.filter(({ name }) => name === 'no credential' || name === 'another origin')
}

function namesResources(requestOf: (resources: VisitorResources) => object, { mine: own, theirs }: Fixtures): boolean {
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
