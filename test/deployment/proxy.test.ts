import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { root } from './dockerfile.ts'

const nginx = '/usr/sbin/nginx'
const isThere = existsSync(nginx)
if (!isThere) console.info('nginx is not installed; skipping the test of its configuration')

const database = testDatabase()
let stack: Stack
let proxyUrl: string
let proxy: ChildProcess

/**
 * Starts nginx with the configuration of compose.yaml. Docker's host name is replaced by local
 * gateways.
 */
async function startProxy(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'service-proxy-'))
  atFileEnd(() => rm(folder, { recursive: true, force: true }))
  const port = await freePort()
  const servers = stack.gateways.map(({ url }) => `server ${new URL(url).host};`).join('\n')
  const text = await readFile(join(root, 'deploy/compose/nginx.conf'), 'utf8')
  const config = `daemon off; pid ${folder}/pid; error_log stderr;\n${text
    .replace(/^ *(zone|resolver) .*$/gm, '')
    .replace('server gateway:8080 resolve;', servers)
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
    .replace(
      'http {',
      `http {\n${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`).join('\n')}`,
    )}`
  await writeFile(join(folder, 'nginx.conf'), config)
  proxy = spawn(nginx, ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', 'stderr'], { stdio: 'inherit' })
  proxyUrl = `http://127.0.0.1:${port}`
  await until('the proxy', () =>
    fetch(`${proxyUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
}

describe.skipIf(!isThere)('the proxy of compose.yaml, in front of two gateways', () => {
  beforeAll(async () => {
    stack = await startStack({
      database,
      cores: 1,
      gateways: 2,
      env: { TRUST_PROXY: '1', RATE_LIMIT_CONFIG_PER_MINUTE: '5' },
    })
    await startProxy()
  })
  afterAll(async () => {
    if (proxy?.exitCode !== null) return
    proxy.kill('SIGTERM')
    await once(proxy, 'exit')
  })

  it('the proxy of compose.yaml forwards events without buffering, and forwards each message once', async () => {
    const { origin, siteKey } = stack.demo
    const visitor = await startVisitor({ gatewayUrl: proxyUrl, origin, siteKey })
    const stream = await visitor.openStream()
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    // The event must arrive while the stream is still open. A buffering proxy would delay the
    // event.
    expect((await visitor.send('One')).status).toBe(202)
    await until('the first event', () => stream.events.length === 1)
    expect((await visitor.send('Two')).status).toBe(202)
    await until('the second event', () => stream.events.length === 2)
    stream.close()
    expect(await visitor.history()).toHaveLength(2)
  })

  it('the proxy of compose.yaml sets the client address and ignores a forged X-Forwarded-For', async () => {
    const limited = async (address: string) => {
      const answer = await fetch(`${proxyUrl}/api/integrations/v1/widget/config/${stack.demo.siteKey}`, {
        headers: { Origin: stack.demo.origin, 'X-Service-Widget-Version': '1.0', 'X-Forwarded-For': address },
      })
      return answer.status === 429
    }
    let tries = 0
    while (!(await limited(`203.0.113.${tries}`)) && tries < 40) tries++
    expect(tries).toBeLessThan(40)
  })
})
