import { randomUUID } from 'node:crypto'
import { isPublicErrorCode, publicError } from '../../contract/errors.ts'
import { CONTRACT_VERSION, WIDGET_PREFIX } from '../../contract/public-api.ts'

export const CALL_MS = 15_000

export interface Call {
  method?: string
  path: string
  /** Whether the request has the header `Origin`. Default: true. */
  hasOrigin?: boolean
  grant?: string
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export type BrowserCall = (call: Call) => Promise<Response>

export const createBrowserCall =
  (url: URL, pageOrigin: string): BrowserCall =>
  ({ method = 'GET', path, hasOrigin = true, grant, body, headers, signal = AbortSignal.timeout(CALL_MS) }) =>
    fetch(new URL(WIDGET_PREFIX + path, url), {
      method,
      headers: {
        ...(hasOrigin && { origin: pageOrigin }),
        'x-service-widget-version': CONTRACT_VERSION,
        ...(grant !== undefined && { authorization: `Bearer ${grant}` }),
        ...(method === 'POST' && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // The gateway never redirects. A browser could not follow a redirect with its credentials.
      redirect: 'manual',
      signal,
    })

/** Reads the JSON of an answer. Returns undefined if it is none, as with a page of the proxy. */
export async function jsonOf(answer: Response): Promise<Record<string, unknown> | undefined> {
  try {
    return JSON.parse(await answer.text())
  } catch {
    return undefined
  }
}

/** Returns why a call failed: the gateway's error with its remedy, or that the proxy answered instead. */
export function refusalOf(status: number, body: Record<string, unknown> | undefined): string {
  const code = body?.code
  if (typeof code === 'string' && isPublicErrorCode(code)) return `${code}. ${publicError(code).remedy}`
  return `status ${status} without an error of the gateway: the proxy answers itself. Send ${WIDGET_PREFIX} to a gateway that is ready`
}
