import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../core/database/database.ts'
import { attachEngine, type Engine } from '../../core/database/embedded/engine.ts'
import { type Link, startLink } from '../support/link.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const logger = pino({ level: 'silent' })
const engines: Engine[] = []
const links: Link[] = []
afterAll(async () => {
  for (const engine of engines) await engine.stop()
  for (const link of links) await link.close()
})

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'service-start-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
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
    entry: 'core/main.ts',
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
  await until('a retry', () => process.output().includes('database is out of reach; retrying in 1 s'))
  expect(await status('/livez')).toBe(200)
  expect(await status('/readyz')).toBe(503)
  const call = await status('/service.workspace.v1.WorkspaceService/ListWorkspaces')
  expect(call).toBe(503)
}

const untilReady = ({ status, process }: CoreAtStart) =>
  until('ready', async () => (await status('/readyz')) === 200).catch((error: Error) => {
    throw new Error(`${error.message}. It wrote:\n${process.output()}`)
  })

const linkToEngine = async () => {
  const link = await startLink(decodeURIComponent(/^mongodb:\/\/([^/?]+)/.exec(database.uri)![1]!))
  links.push(link)
  return { link, uri: `mongodb://127.0.0.1:${link.port}/?directConnection=true` }
}

describe('a core that starts', { timeout: 90_000 }, () => {
  it('before its database is ready once the database starts', async () => {
    const engineDir = await newFolder()
    const { uri, stop } = await attachEngine({ dataDir: engineDir, logger })
    await stop()
    const core = await startCore(uri)
    await expectWaiting(core)
    await newEngine(engineDir)
    await untilReady(core)
  })

  it('while its database is suspended is ready once the database resumes', async () => {
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
    const enginePid = await childOf(holder.pid)
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

  it('while its database is too slow is ready once the database is fast enough', async () => {
    const { link, uri } = await linkToEngine()
    link.slow(700)
    const core = await startCore(uri)
    await expectWaiting(core)
    link.mend()
    await untilReady(core)
  })

  it('while its database resets connections is ready once the resets stop', async () => {
    // Migrates beforehand, so that no failed attempt leaves a lock that delays the next.
    // A database of its own: the secrets of another core's data folder do not open this one.
    const name = `${database.name}-resets`
    await (await openDatabase({ uri: database.uri, name, timeoutMs: 5000 })).close()
    const { link, uri } = await linkToEngine()
    link.resetInAnswers(1)
    const core = await startCore(uri, { MIGRATE_AT_START: 'off', MONGODB_DATABASE: name })
    await until('a retry', () => core.process.output().includes('retrying in 1 s'))
    link.mend()
    await untilReady(core)
  })

  it('stops at once on SIGTERM while it waits for its database', async () => {
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
})

describe('a gateway and a delivery worker that start', { timeout: 90_000 }, () => {
  it('before their core wait for its token and are ready once the core is', async () => {
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
    await until('the worker to wait', () => worker.running.output().includes('waiting for a core to make the token'))
    await expectWaiting(core)
    await newEngine(engineDir)
    await untilReady(core)
    for (const { readyz } of parts) {
      await until('readiness', () => statusOf(readyz).then((status) => status === 200))
    }
  })
})

const statusOf = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => undefined,
  )

/** Process id of the only child of a process. */
async function childOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
  expect(children).toHaveLength(1)
  return Number(children[0])
}
