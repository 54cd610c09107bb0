import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Finding, fault, fine } from './findings.ts'

const CONNECT_MS = 5_000
const DAY_MS = 86_400_000
/** Programs that renew certificates do it earlier than this number of days before the end. */
const MIN_DAYS_LEFT = 14

type Resolve = (host: string, options: { all: true }) => Promise<{ address: string }[]>

/** Connects to each address of the host, with TLS for `https:`. Yields a finding before it tries the next address. */
export async function* connectionFindings(url: URL, resolve: Resolve = lookup): AsyncGenerator<Finding, boolean> {
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
  /** Addresses of this machine that refused the connection, until another one is reached. */
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
    discard(socket)
  }
}

function discard(socket: Socket) {
  socket.on('error', () => {})
  socket.destroy()
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
