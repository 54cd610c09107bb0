import net from 'node:net'
import tls from 'node:tls'
import { AttemptPhase } from '#proto/lead/v1/delivery_pb.js'
import { DestinationBlockedError, type ResolvedAddress } from '../platform/addresses/resolve.ts'

/** Opens a TCP connection; Node's own unless a test puts another one in its place. */
export type Dial = (options: net.TcpNetConnectOpts) => net.Socket

/** How long one of several addresses is tried alone before the next one joins, in milliseconds. */
const headStartMs = 300

export interface OpenSocketOptions {
  url: URL
  /** Judged, and no others are connected to. */
  addresses: ResolvedAddress[]
  signal: AbortSignal
  onPhase: (phase: AttemptPhase) => void
  dial?: Dial | undefined
  /** Authorities to trust instead of Node's, in PEM. */
  ca?: string | undefined
}

/**
 * A connection to a URL's host, TLS done where it is https: to one of the given addresses, with the host's own name for TLS.
 * Neither the name is resolved again nor is there a proxy. Errors: Node's, `DestinationBlockedError`, the signal's reason.
 */
export async function openSocket(options: OpenSocketOptions): Promise<net.Socket> {
  const { url, signal, onPhase } = options
  onPhase(AttemptPhase.CONNECT)
  const socket = (options.dial ?? net.connect)(tcpOptions(options))
  try {
    await settled(socket, 'connect', signal)
    if (!options.addresses.some(({ address }) => isSame(address, socket.remoteAddress))) {
      throw new DestinationBlockedError()
    }
    if (url.protocol === 'http:') return socket
    onPhase(AttemptPhase.TLS)
    const secured = tls.connect({ socket, ...tlsOptions(url, options.ca) })
    await settled(secured, 'secureConnect', signal)
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
    // An address has no place in the server's name (RFC 6066, section 3); the certificate is checked against `host` then.
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    // Said, for otherwise the environment can switch it off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  }
}

/** Without the brackets of an address, and without the dot that ends a full name. */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Resolves with the event; rejects with the socket's error, its end, or the signal's reason. */
function settled(socket: net.Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    const close = () => fail(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
    // Stays: a socket that nobody listens to would take the process down with its error.
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

function isSame(address: string, remote: string | undefined): boolean {
  if (remote === undefined) return false
  const same = new net.BlockList()
  same.addAddress(address, net.isIPv6(address) ? 'ipv6' : 'ipv4')
  return net.isIP(remote) !== 0 && same.check(remote, net.isIPv6(remote) ? 'ipv6' : 'ipv4')
}
