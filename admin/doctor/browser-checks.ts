import { type BrowserCall, CALL_MS, jsonOf, refusalOf } from './browser-calls.ts'
import { type Finding, fault, fine } from './findings.ts'

/** A core does not start if its clock differs from the database's by more. */
const MAX_CLOCK_DIFFERENCE_MS = 10_000

export async function* configFindings(
  call: BrowserCall,
  url: URL,
  siteKey: string,
  origin: string,
): AsyncGenerator<Finding, boolean> {
  const path = `/config/${encodeURIComponent(siteKey)}`
  const answer = await call({ path })
  const body = await jsonOf(answer)
  if (answer.status !== 200 || !body) {
    yield fault(`the configuration was refused: ${refusalOf(answer.status, body)}`)
    return false
  }
  yield fine('the configuration is readable')
  yield clockFinding(answer.headers.get('date'))
  yield corsFinding(answer, origin)
  yield await preflightFinding(call)
  yield await publicHostFinding(url)
  if (origin === url.origin) yield await ownPageFinding(call, path, url)
  return true
}

function clockFinding(date: string | null) {
  const seconds = Math.round((Date.parse(date ?? '') - Date.now()) / 1_000)
  if (Number.isNaN(seconds)) return fault('the answer has no date: let the proxy keep the header `Date`')
  if (Math.abs(seconds) * 1_000 > MAX_CLOCK_DIFFERENCE_MS)
    return fault(
      `the clocks of the server and of this machine differ by ${Math.abs(seconds)} s: set the wrong one (NTP)`,
    )
  return fine(`the clocks differ by ${Math.abs(seconds)} s`)
}

function corsFinding(answer: Response, origin: string) {
  const allowed = answer.headers.get('access-control-allow-origin')
  if (allowed === origin) return fine(`pages of ${origin} may read answers`)
  const seen = allowed === null ? 'lacks it' : `has ${JSON.stringify(allowed)}`
  return fault(
    `\`Access-Control-Allow-Origin\` must be ${origin}, and the answer ${seen}: let the proxy pass the gateway’s CORS headers and add none`,
  )
}

async function preflightFinding(call: BrowserCall) {
  const { status, headers } = await call({
    method: 'OPTIONS',
    path: '/sessions',
    headers: {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,idempotency-key,x-service-widget-version',
    },
  })
  const allowed = headers.get('access-control-allow-headers')?.toLowerCase() ?? ''
  if (status < 300 && allowed.includes('idempotency-key')) return fine('browsers may send messages')
  return fault(`the browser’s question before a message (OPTIONS) got status ${status}: let the proxy pass OPTIONS`)
}

const MEND_HOST =
  'let the proxy keep `Host`, or set X-Forwarded-Host and X-Forwarded-Proto and name the proxy in TRUST_PROXY'

/**
 * Calls without a session get 401. They get 403 if the gateway gets another host than the public one, and 404 if
 * it has no `/rpc`.
 */
async function publicHostFinding(url: URL) {
  const { status } = await fetch(new URL('/rpc/service.workspace.v1.WorkspaceService/GetWorkspace', url), {
    method: 'POST',
    headers: { origin: url.origin, 'content-type': 'application/json' },
    body: '{}',
    redirect: 'manual',
    signal: AbortSignal.timeout(CALL_MS),
  })
  if (status !== 403) return fine('the gateway gets the public host')
  return fault(`the gateway does not know that its public host is ${url.host}: ${MEND_HOST}`)
}

/** Browsers send no `Origin` with a GET of the gateway's own page, so the gateway has to know its scheme and host. */
async function ownPageFinding(call: BrowserCall, path: string, url: URL) {
  const { status } = await call({ path, hasOrigin: false, headers: { 'sec-fetch-site': 'same-origin' } })
  if (status === 200) return fine('pages of the gateway’s own origin can chat')
  return fault(`the gateway does not know that its public origin is ${url.origin}: ${MEND_HOST}`)
}
