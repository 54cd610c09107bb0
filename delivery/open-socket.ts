import net from 'node:net'
import tls from 'node:tls'
import { AttemptPhase } from '#proto/lead/v1/delivery_pb.js'
import { DestinationBlockedError, type ResolvedAddress } from '../platform/addresses/resolve.ts'

/** Opens a TCP connection. Defaults to `net.connect`; replaced in tests. */
export type Dial = (options: net.TcpNetConnectOpts) => net.Socket

/** Milliseconds until the next address is tried in parallel (happy eyeballs). */
const headStartMs = 300

export interface OpenSocketOptions {
  url: URL
  /** The allowed addresses. Only these are connected to. */
  addresses: ResolvedAddress[]
  signal: AbortSignal
  onPhase: (phase: AttemptPhase) => void
  dial?: Dial | undefined
  /** Authorities to trust instead of Node's, in PEM. */
  ca?: string | undefined
}

/**
 * Connects to the host of a URL, with TLS for https. Connects only to the given addresses: the name
 * is not resolved again and no proxy is used. TLS verifies the name of the host. Errors: Node's,
 * `DestinationBlockedError`, the reason of the signal.
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
    // `servername` must not be an address (RFC 6066, section 3). TLS then verifies `host`.
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED could disable it otherwise.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  }
}

/** Removes the brackets of an address and the trailing dot of a name. */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Resolves on the event. Rejects on an error, the close of the socket, or an abort. */
function waitFor(socket: net.Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    const close = () => fail(Object.assign(new Error('connection closed'), { code: 'ECONNRESET' }))
    // This listener stays: an unhandled socket error would end the process.
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
