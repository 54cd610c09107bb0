import net from 'node:net'
import tls from 'node:tls'
import { AttemptPhase } from '#proto/lead/v1/delivery_pb.js'
import type { ResolvedAddress } from '../platform/addresses/name-service.ts'
import { DestinationBlockedError } from '../platform/addresses/resolve.ts'

export type Dial = (options: net.TcpNetConnectOpts) => net.Socket

/** The next address is tried in parallel after this time (Happy Eyeballs, RFC 8305). */
const headStartMs = 300

interface OpenSocketOptions {
  url: URL
  /** Checked addresses. No others are connected to. */
  addresses: ResolvedAddress[]
  signal: AbortSignal
  onPhase: (phase: AttemptPhase) => void
  dial?: Dial | undefined
  /** Certificate authorities (PEM) instead of Node's. */
  ca?: string | undefined
}

/**
 * Connects to the host of a URL, with TLS for https, over one of the given addresses only: no name is
 * resolved again, and no proxy is used. TLS verifies the host name. Errors: `DestinationBlockedError`, the
 * reason of the signal, and Node's network errors.
 */
export async function openSocket(options: OpenSocketOptions): Promise<net.Socket> {
  const { url, signal, onPhase } = options
  onPhase(AttemptPhase.CONNECT)
  const socket = (options.dial ?? net.connect)(tcpOptions(options))
  try {
    await waitFor(socket, 'connect', signal)
    if (!options.addresses.some(({ address }) => isSame(address, socket.remoteAddress))) {
      throw new DestinationBlockedError()
    }
    if (url.protocol === 'http:') return socket
    onPhase(AttemptPhase.TLS)
    const secured = tls.connect({ socket, ...tlsOptions(url, options.ca) })
    await waitFor(secured, 'secureConnect', signal)
    return secured
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function tcpOptions({ url, addresses }: OpenSocketOptions): net.TcpNetConnectOpts {
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  const [first, ...others] = addresses
  if (first === undefined) throw new DestinationBlockedError()
  const common = { port, noDelay: true, keepAlive: true }
  if (others.length === 0) return { ...common, host: first.address, family: first.family }
  return {
    ...common,
    host: bareHost(url),
    lookup: (_host, _options, answer) => answer(null, addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: headStartMs,
  }
}

function tlsOptions(url: URL, ca: string | undefined): tls.ConnectionOptions {
  const host = bareHost(url)
  return {
    host,
    // `servername` must not be an address (RFC 6066, section 3). Without it, TLS verifies `host`.
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED could disable the verification.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  }
}

/** Returns the host without the brackets of an IPv6 address or the trailing dot of a name. */
function bareHost({ hostname }: URL) {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Rejects if the socket fails or closes, or the signal aborts. */
function waitFor(socket: net.Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    const close = () => fail(Object.assign(new Error('connection closed'), { code: 'ECONNRESET' }))
    // This listener is never removed, because an unhandled socket error would end the process.
    socket.on('error', fail)
    socket.once('close', close)
    socket.once(event, () => {
      socket.off('close', close)
      signal.removeEventListener('abort', abort)
      resolve()
    })
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
  })
}

function isSame(address: string, remote: string | undefined) {
  if (remote === undefined) return false
  const same = new net.BlockList()
  same.addAddress(address, net.isIPv6(address) ? 'ipv6' : 'ipv4')
  return net.isIP(remote) !== 0 && same.check(remote, net.isIPv6(remote) ? 'ipv6' : 'ipv4')
}
