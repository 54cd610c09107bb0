/** Gateways are replaced one by one behind the proxy of compose.yaml, by /readyz alone. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startLocalStack } from '../support/local-stack.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { hasNginx, startNginx } from './nginx.ts'

const databases = { name: testDatabase(), fixed: testDatabase() }
if (!hasNginx) console.info('nginx is not installed; skipping the replacement of gateways behind it')

describe.skipIf(!hasNginx)('the proxy of compose.yaml loses no send while gateways are replaced', () => {
  it.each([
    ['at new addresses of their name', 'name'],
    ['at fixed addresses', 'fixed'],
  ] as const)('%s', async (_name, kind) => {
    const stack = await startLocalStack({ database: databases[kind] })
    const port = await freePort()
    const running = new Map<string, StartedProcess>()
    onTestFinished(() => Promise.all([...running.values()].map((gateway) => gateway.stop())).then(() => {}))

    async function startGateway(host: string) {
      const gateway = await startProcess({
        entry: 'gateway/main.ts',
        env: {
          DATA_DIR: stack.dataDir,
          CORE_URLS: stack.cores[0]!.url,
          GATEWAY_HOST: host,
          GATEWAY_PORT: String(port),
          TRUST_PROXY: '1',
          RATE_LIMIT_FACTOR: '1000',
        },
        readyUrl: `http://${host}:${port}/readyz`,
      })
      running.set(host, gateway)
    }
    async function stopGateway(host: string) {
      await running.get(host)!.stop()
      running.delete(host)
    }

    const [first, second] = ['127.0.9.1', '127.0.9.2']
    await Promise.all([startGateway(first!), startGateway(second!)])
    const gatewayUrl = await startNginx({
      port,
      addresses: () => [...running.keys()],
      edit: (text) =>
        kind === 'name'
          ? text
          : text
              .replace(/^ *#(upstream fixed|set \$gateways)/gm, '$1')
              .replace('127.0.0.1:8082', `${first}:${port}`)
              .replace('127.0.0.1:8083', `${second}:${port}`),
    })
    const statuses: Record<string, number> = {}
    const stopped = new AbortController()
    const sender = async () => {
      const visitor = await startVisitor({ ...stack.demo, gatewayUrl })
      while (!stopped.signal.aborted) {
        const status = await visitor.send('Hello').then(
          (answer) => answer.status,
          (error: Error) => error.message,
        )
        statuses[status] = (statuses[status] ?? 0) + 1
        await delay(20)
      }
    }
    const sending = Promise.all(Array.from({ length: 8 }, sender))
    const sent = () => Object.values(statuses).reduce((sum, count) => sum + count, 0)
    const more = async () => {
      const before = sent()
      await until('more sends', () => sent() > before + 30)
    }

    await more()
    for (let round = 0; round < 2; round += 1) {
      for (const [index, host] of [first!, second!].entries()) {
        if (kind === 'fixed') {
          await stopGateway(host)
          await startGateway(host)
        } else {
          const [from, to] = [`127.0.9.${1 + index + 2 * round}`, `127.0.9.${3 + index + 2 * round}`]
          await startGateway(to)
          await stopGateway(from)
        }
      }
    }
    await more()
    stopped.abort()
    await sending
    expect(Object.keys(statuses)).toEqual(['202'])
  })
})
