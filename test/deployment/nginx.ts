import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort, startProgram } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { root } from './dockerfile.ts'

export const nginx = '/usr/sbin/nginx'
export const hasNginx = existsSync(nginx)
export const configFile = join(root, 'deploy/compose/nginx.conf')

/** Starts a DNS server that answers each question with these IPv4 addresses. Returns its port. */
async function startDns(addresses: () => string[]): Promise<number> {
  const socket = createSocket('udp4', (query, { port, address }) => {
    const found = addresses()
    const header = Buffer.from(query.subarray(0, 12))
    // A response without an error: one question, some answers.
    for (const [index, value] of [0x8180, 1, found.length, 0, 0].entries()) header.writeUInt16BE(value, 2 + 2 * index)
    const question = query.subarray(12, query.indexOf(0, 12) + 5)
    // Each answer: the name of the question, type A, class IN, a lifetime of 600 s, 4 bytes.
    const prefix = [0xc0, 12, 0, 1, 0, 1, 0, 0, 2, 88, 0, 4]
    const answers = found.map((each) => Buffer.from([...prefix, ...each.split('.').map(Number)]))
    socket.send(Buffer.concat([header, question, ...answers]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atFileEnd(async () => void socket.close())
  return socket.address().port
}

/**
 * Starts nginx with the configuration of compose.yaml, in which only ports and addresses are
 * replaced, and removes comment signs in `edit`. Returns its URL when it forwards.
 */
export async function startNginx(options: {
  /** Port of all gateways. */
  port: number
  /** The addresses of the name `gateway`. */
  addresses: () => string[]
  edit?: (text: string) => string
}): Promise<string> {
  const { port, addresses, edit = (text) => text } = options
  const folder = await mkdtemp(join(tmpdir(), 'service-proxy-'))
  const ownPort = await freePort()
  const text = await readFile(configFile, 'utf8')
  const config = edit(text)
    .replace('listen 8080;', `listen 127.0.0.1:${ownPort};`)
    .replace('resolver 127.0.0.11 ', `resolver 127.0.0.1:${await startDns(addresses)} `)
    .replace('gateway:8080', `gateway:${port}`)
    .replace(
      'http {',
      `http {\n${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`).join('\n')}`,
    )
  await writeFile(join(folder, 'nginx.conf'), config)
  const global = `daemon off; pid ${folder}/pid;`
  const running = await startProgram(nginx, ['-c', join(folder, 'nginx.conf'), '-e', 'stderr', '-g', global], ownPort)
  atFileEnd(async () => {
    await running.stop()
    await rm(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${ownPort}`
  await until('the proxy', () => fetch(`${url}/readyz`).then(({ ok }) => ok))
  return url
}
