import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../core/database/database.ts'

import { attachEngine } from '../../dev/engine/engine.ts'
import { childrenOf } from '../support/proc.ts'

import { freePort, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { statusOf, useStartingCores } from './starting-cores.ts'

const { newFolder, newEngine, startCore, expectWaiting, untilReady, proxyToEngine, database, logger } =
  useStartingCores()

describe('a core that starts', () => {
  it('becomes ready when its database starts later', async () => {
    const engineDir = await newFolder()
    const { uri, stop } = await attachEngine({ dataDir: engineDir, logger })
    await stop()
    const core = await startCore(uri)
    await expectWaiting(core)
    await newEngine(engineDir)
    await untilReady(core)
  })

  it('stops immediately on SIGTERM while it waits for its database', async () => {
    const core = await startCore('mongodb://127.0.0.1:1/?directConnection=true')
    await expectWaiting(core)
    core.process.kill('SIGTERM')
    expect(await core.process.exited).toMatchObject({ code: 0 })
    expect(core.process.output()).toContain('core stopped')
  })

  it('exits with an error if the database stays unreachable', async () => {
    const core = await startCore('mongodb://127.0.0.1:1/?directConnection=true', { MONGODB_START_TIMEOUT_MS: '3000' })
    expect(await core.process.exited).toMatchObject({ code: 1 })
    expect(core.process.output()).toMatch(/core: the database could not be reached within 3 s: /)
  })

  it('becomes ready after its suspended database has resumed', async () => {
    const engineDir = await newFolder()
    const holder = await startProcess({
      entry: 'test/support/engine-holder.ts',
      name: 'engine holder',
      args: [engineDir],
    })
    await until('the engine', () => holder.output().includes('attached'))
    const { uri } = JSON.parse(
      holder
        .output()
        .split('\n')
        .find((line) => line.includes('attached'))!,
    )
    const [enginePid = 0] = await childrenOf(holder.pid)
    process.kill(enginePid, 'SIGSTOP')
    try {
      const core = await startCore(uri)
      await expectWaiting(core)
      process.kill(enginePid, 'SIGCONT')
      await untilReady(core)
    } finally {
      process.kill(enginePid, 'SIGCONT')
    }
  })

  it('becomes ready after its slow database is fast enough again', async () => {
    const { proxy, uri } = await proxyToEngine()
    proxy.slow(700)
    const core = await startCore(uri)
    await expectWaiting(core)
    proxy.mend()
    await untilReady(core)
  })

  it('becomes ready after its database has stopped resetting connections', async () => {
    // Migrates before the core starts: a failed migration of the core could leave a lock, which would delay the next
    // one. Uses a new database, because a core cannot use the secrets that another core has stored.
    const name = `${database.name}-resets`
    await (await openDatabase({ uri: database.uri, name, timeoutMs: 5000 })).close()
    const { proxy, uri } = await proxyToEngine()
    proxy.resetInAnswers(1)
    const core = await startCore(uri, { MIGRATE_AT_START: 'off', MONGODB_DATABASE: name })
    await until('a retry', () => core.process.output().includes('retrying in 1 s'))
    proxy.mend()
    await untilReady(core)
  })
})

describe('a gateway and a delivery worker', () => {
  it('wait for the core’s token if they start before the core, and become ready when the core is ready', async () => {
    const engineDir = await newFolder()
    const { uri, stop } = await attachEngine({ dataDir: engineDir, logger })
    await stop()
    const core = await startCore(uri)
    const parts = await Promise.all(
      (['gateway', 'delivery'] as const).map(async (name) => {
        const port = await freePort()
        const running = await startProcess({
          entry: `${name}/main.ts`,
          name,
          env: {
            [`${name.toUpperCase()}_PORT`]: String(port),
            DATA_DIR: core.dataDir,
            CORE_URLS: core.url,
          },
        })
        return { running, readyz: `http://127.0.0.1:${port}/readyz` }
      }),
    )
    const [gateway, worker] = parts as [(typeof parts)[number], (typeof parts)[number]]
    await until('the gateway to listen', () => statusOf(gateway.readyz).then((status) => status === 503))
    await until('the worker to wait', () => worker.running.output().includes('waiting for a core to create the token'))
    await expectWaiting(core)
    await newEngine(engineDir)
    await untilReady(core)
    for (const { readyz } of parts) {
      await until('readiness', () => statusOf(readyz).then((status) => status === 200))
    }
  })
})
