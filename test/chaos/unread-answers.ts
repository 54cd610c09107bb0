import { connect, type Socket } from 'node:net'
import { residentBytes } from '../support/proc.ts'
import type { ClientContext } from './client-context.ts'
import { arrive, pause } from './visitors.ts'

/** Maximum resident memory of a gateway or a core while clients do not read their answers. */
const MEMORY_MAX_MIB = 700
const CLIENTS = 40
/** More requests than the buffers of the system hold answers. */
const PIPELINED = 40
const base = '/api/integrations/v1/widget'

/**
 * Asks for large answers and does not read them, until the run drains. Records each part whose memory
 * exceeds the bound.
 */
export async function leaveAnswersUnread(context: ClientContext): Promise<void> {
  const { service, random, recorder, draining } = context
  const visitor = await arrive(context, 'unread')
  if (visitor === undefined) return
  const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  const authorized =
    `Origin: ${service.demo.origin}\r\nX-Service-Widget-Version: 1.0\r\n` +
    `Authorization: Bearer ${visitor.session.accessGrant}\r\n`
  const requests = [
    request('/docs/js/scalar.js'),
    request('/docs/openapi.json'),
    request('/widget.js'),
    request('/unknown'),
    request(`${base}/messages?limit=100`, authorized),
    request(`${base}/config/${service.demo.siteKey}`, authorized),
  ]
  const open = new Set<Socket>()

  function ask(url: string) {
    const { hostname, port } = new URL(url)
    // Connects to the part itself, because the proxy in front of it would read the answer.
    const socket = connect({ host: hostname, port: Number(port) })
    open.add(socket)
    socket.on('data', () => socket.pause()).pause()
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
    socket.write(random.pick(requests).repeat(PIPELINED))
  }

  while (!draining.aborted) {
    for (const { url } of service.gateways) if (open.size < CLIENTS) ask(url)
    for (const socket of open) {
      if (random.next() < 0.02) socket.destroy()
      // A slow client reads a little.
      else if (random.next() < 0.1) socket.resume()
    }
    for (const { name, pid } of [...service.gateways, ...service.cores]) {
      const mebibytes = Math.round((await residentBytes(pid()).catch(() => 0)) / 2 ** 20)
      if (mebibytes > MEMORY_MAX_MIB) recorder.add({ kind: 'memory', part: name, mebibytes })
    }
    await pause(random.between(100, 300), draining)
  }
  for (const socket of open) socket.destroy()
}
