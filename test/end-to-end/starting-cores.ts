import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, expect } from 'vitest'
import { attachEngine, type Engine } from '../../dev/engine/engine.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

/**
 * Returns functions that start cores before their database is reachable. Must be called at the top
 * level of a test file.
 */
export function useStartingCores() {
  const database = testDatabase({ isNew: true })
  const logger = pino({ level: 'silent' })
  const engines: Engine[] = []
  const proxies: FaultyProxy[] = []
  afterAll(async () => {
    for (const engine of engines) await engine.stop()
    for (const proxy of proxies) await proxy.close()
  })

  async function newFolder() {
    const folder = await mkdtemp(join(tmpdir(), 'service-start-'))
    atFileEnd(() => rm(folder, { recursive: true, force: true }))
    return folder
  }

  async function newEngine(dataDir: string) {
    const engine = await attachEngine({ dataDir, logger })
    engines.push(engine)
    return engine
  }

  interface CoreAtStart {
    process: StartedProcess
    dataDir: string
    url: string
    status(path: string): Promise<number | undefined>
  }

  async function startCore(mongodbUri: string, env: Record<string, string> = {}): Promise<CoreAtStart> {
    const [port, dataDir] = [await freePort(), await newFolder()]
    const url = `http://127.0.0.1:${port}`
    const process = await startProcess({
      entry: 'dev/core.ts',
      name: 'core',
      env: {
        CORE_PORT: String(port),
        DATA_DIR: dataDir,
        MONGODB_URI: mongodbUri,
        MONGODB_DATABASE: database.name,
        MONGODB_TIMEOUT_MS: '1000',
        ...env,
      },
      readyUrl: `${url}/livez`,
    })
    const status = (path: string) => statusOf(url + path)
    return { process, dataDir, url, status }
  }

  /** Expects a core that is alive, not ready, and logs its connection retries. */
  async function expectWaiting({ process, status }: CoreAtStart) {
    await until('a retry', () => process.output().includes('database is unreachable; retrying in 1 s'))
    expect(await status('/livez')).toBe(200)
    expect(await status('/readyz')).toBe(503)
    const call = await status('/service.workspace.v1.WorkspaceService/ListWorkspaces')
    expect(call).toBe(503)
  }

  const untilReady = ({ status, process }: CoreAtStart) =>
    until('ready', async () => (await status('/readyz')) === 200).catch((error: Error) => {
      throw new Error(`${error.message}. It wrote:\n${process.output()}`)
    })

  const proxyToEngine = async () => {
    const proxy = await startFaultyProxy(decodeURIComponent(/^mongodb:\/\/([^/?]+)/.exec(database.uri)![1]!))
    proxies.push(proxy)
    return { proxy, uri: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true` }
  }

  return { newFolder, newEngine, startCore, expectWaiting, untilReady, proxyToEngine, database, logger }
}

export const statusOf = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => undefined,
  )
