import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isPublicErrorCode, publicError } from '../../contract/errors.ts'
import { CONTRACT_VERSION, WIDGET_PREFIX } from '../../contract/public-api.ts'

/**
 * Opens the public URL as a browser on a page of the origin does. A group of checks returns false if a fault
 * leaves nothing for the next one to check.
 */
export async function* examine(url: URL, siteKey: string, origin: string, openMs: number): AsyncGenerator<Finding> {
  const call = createBrowserCall(url, origin)
  const groups = [
    () => connectionFindings(url),
    () => configFindings(call, url, siteKey, origin),
    () => streamFindings(call, siteKey, openMs),
  ]
  for (const group of groups) {
    try {
      if (!(yield* group())) return
    } catch (error) {
      yield fault(`no answer: ${causeOf(error)}. Check the proxy, and that a gateway is ready behind it`)
      return
    }
  }
}

function causeOf(error: unknown) {
  const { cause, message } = error as Error
  return cause instanceof Error ? cause.message : message
}

const CALL_MS = 15_000

interface Call {
  method?: string
  path: string
  /** Whether the request has the header `Origin`. Default: true. */
  hasOrigin?: boolean
  grant?: string
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

type BrowserCall = ReturnType<typeof createBrowserCall>

const createBrowserCall =
  (url: URL, pageOrigin: string) =>
  ({ method = 'GET', path, hasOrigin = true, grant, body, headers, signal = AbortSignal.timeout(CALL_MS) }: Call) =>
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
async function jsonOf(answer: Response): Promise<Record<string, unknown> | undefined> {
  try {
    return JSON.parse(await answer.text())
  } catch {
    return undefined
  }
}

/** Returns why a call failed: the gateway's error with its remedy, or that the proxy answered instead. */
function refusalOf(status: number, body: Record<string, unknown> | undefined): string {
  const code = body?.code
  if (typeof code === 'string' && isPublicErrorCode(code)) return `${code}. ${publicError(code).remedy}`
  return `status ${status} without an error of the gateway: the proxy answers itself. Send ${WIDGET_PREFIX} to a gateway that is ready`
}

/** What a check found. `text` says what was seen and, for a fault, how to mend it. */
export interface Finding {
  isFault: boolean
  text: string
}

const fine = (text: string): Finding => ({ isFault: false, text })
const fault = (text: string): Finding => ({ isFault: true, text })

const CONNECT_MS = 5_000
const DAY_MS = 86_400_000
/** Programs that renew certificates do it earlier than this number of days before the end. */
const MIN_DAYS_LEFT = 14

/** Connects to each address of the host, with TLS for `https:`. Yields a finding before it tries the next address. */
export async function* connectionFindings(
  url: URL,
  resolve: (host: string, options: { all: true }) => Promise<{ address: string }[]> = lookup,
): AsyncGenerator<Finding, boolean> {
  // The hostname of an IPv6 address has brackets.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  let addresses: string[]
  try {
    addresses = (await resolve(host, { all: true })).map(({ address }) => address)
  } catch {
    yield fault(`${host} does not resolve: add its A or AAAA record, or correct the name`)
    return false
  }
  yield fine(`${host} resolves to ${addresses.join(', ')}`)
  let isReached = false
  /** Local addresses that refused the connection. Empty once another address was reached. */
  let refused: { address: string; finding: Finding }[] = []
  for (const address of addresses) {
    const { isOpen, isRefused, finding } = await openedConnection(address, port, url.protocol === 'https:' ? host : '')
    isReached ||= isOpen
    // A server often listens on only one of the addresses of `localhost`.
    if (isRefused && isLocal(host)) refused.push({ address, finding })
    else yield finding
    if (!isReached) continue
    for (const { address } of refused) yield fine(`nothing listens on ${address}; browsers use the other address`)
    refused = []
  }
  for (const { finding } of refused) yield finding
  if (url.protocol === 'http:' && !isLocal(host))
    yield fault('the URL begins with http: pages with https cannot use it. Terminate TLS in the proxy')
  return isReached
}

const isLocal = (host: string) => host === 'localhost' || host.endsWith('.localhost') || /^(127\.|::1$)/.test(host)

/** `tlsName` is the host of the certificate, or empty for a connection without TLS. */
async function openedConnection(address: string, port: number, tlsName: string) {
  const socket = tlsName
    ? connectTls({
        host: address,
        port,
        ...(isIP(tlsName) === 0 && { servername: tlsName }),
        ALPNProtocols: ['h2', 'http/1.1'],
      })
    : connect({ host: address, port })
  try {
    await once(socket, tlsName ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(CONNECT_MS) })
    const finding = tlsName
      ? tlsFinding(address, socket as TLSSocket)
      : fine(`${address} accepts connections on port ${port}`)
    return { isOpen: true, isRefused: false, finding }
  } catch (error) {
    const failure = error as NodeJS.ErrnoException
    const finding = fault(`${address}, port ${port}: ${connectFault(failure)}`)
    return { isOpen: false, isRefused: failure.code === 'ECONNREFUSED', finding }
  } finally {
    socket.on('error', () => {}).destroy()
  }
}

function connectFault({ code = '', message, name }: NodeJS.ErrnoException) {
  if (name === 'AbortError')
    return 'no answer within 5 s: a firewall drops the packets, or the record names another machine'
  if (code === 'ECONNREFUSED') return 'nothing listens there: start the proxy, or remove the record'
  if (code === 'CERT_HAS_EXPIRED') return 'the certificate has expired: renew it'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'the certificate is for another name: add this host to it'
  if (/CERT|SIGNED|ISSUER|SIGNATURE/.test(code))
    return `browsers do not trust the certificate (${code}): send the whole chain of a public authority`
  return `${message}: check the proxy’s address, port and TLS settings`
}

function tlsFinding(address: string, socket: TLSSocket) {
  const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / DAY_MS)
  if (days < MIN_DAYS_LEFT) return fault(`${address}: the certificate ends in ${days} days: renew it`)
  if (socket.alpnProtocol !== 'h2')
    return fault(`${address}: no HTTP/2, so the tabs of a browser share two event streams: enable it in the proxy`)
  return fine(`${address} accepts TLS with HTTP/2; the certificate ends in ${days} days`)
}

/** A core does not start if its clock differs from the database's by more. */
const MAX_CLOCK_DIFFERENCE_MS = 10_000

async function* configFindings(call: BrowserCall, url: URL, siteKey: string, origin: string) {
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

/** A gateway sends the first bytes of a stream at once. */
const FIRST_BYTES_MS = 5_000

/** Opens a session, keeps its stream open for `openMs`, and ends the session. Sends no message. */
async function* streamFindings(call: BrowserCall, siteKey: string, openMs: number): AsyncGenerator<Finding, boolean> {
  const created = await call({
    method: 'POST',
    path: '/sessions',
    body: { publicSiteKey: siteKey, clientInstanceId: 'doctor' },
  })
  const session = await jsonOf(created)
  const grant = session?.accessGrant
  if (created.status !== 201 || typeof grant !== 'string') {
    yield fault(`a session was refused: ${refusalOf(created.status, session)}`)
    return false
  }
  try {
    yield* openStreamFindings(call, grant, openMs)
  } finally {
    await call({ method: 'POST', path: '/sessions/close', grant, body: { scope: 'continuity' } }).catch(() => {})
  }
  return true
}

async function* openStreamFindings(call: BrowserCall, grant: string, openMs: number): AsyncGenerator<Finding> {
  const stop = new AbortController()
  const startedAt = performance.now()
  // If a proxy buffers the whole answer, not even its headers arrive.
  const noAnswer = setTimeout(() => stop.abort(), FIRST_BYTES_MS)
  try {
    const answer = await call({
      path: '/events',
      grant,
      headers: { accept: 'text/event-stream', 'accept-encoding': 'gzip, br' },
      signal: stop.signal,
    })
    if (answer.status !== 200 || !answer.body) {
      yield fault(`the event stream was refused: ${refusalOf(answer.status, await jsonOf(answer))}`)
      return
    }
    const encoding = answer.headers.get('content-encoding')
    if (encoding) yield fault(`the proxy compresses the event stream (${encoding}): exclude text/event-stream`)
    const chunks = answer.body.getReader()
    const first = await chunks.read()
    clearTimeout(noAnswer)
    if (first.done) {
      yield fault('the event stream ended before its first byte: the proxy closes it')
      return
    }
    yield fine('events arrive when they are sent')
    yield await endFinding(chunks, startedAt, openMs)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    yield fault('the event stream sent nothing for 5 s: turn response buffering off in the proxy')
  } finally {
    clearTimeout(noAnswer)
    stop.abort()
  }
}

async function endFinding(chunks: ReadableStreamDefaultReader<Uint8Array>, startedAt: number, openMs: number) {
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000)
  let end: NodeJS.Timeout | undefined
  const isOver = new Promise<'over'>((resolve) => {
    end = setTimeout(() => resolve('over'), openMs)
  })
  try {
    while (true) {
      const next = await Promise.race([chunks.read(), isOver])
      if (next === 'over') return fine(`the event stream stayed open for ${seconds()} s`)
      if (next.done) return endedEarly(seconds())
    }
  } catch {
    return endedEarly(seconds())
  } finally {
    clearTimeout(end)
  }
}

const endedEarly = (seconds: number): Finding =>
  fault(
    `the event stream ended after ${seconds} s: set the proxy’s read timeout far above HEARTBEAT_SECONDS, such as an hour`,
  )
