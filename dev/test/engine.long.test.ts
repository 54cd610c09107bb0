import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { MongoClient } from 'mongodb'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { isAlive } from '../../test/support/proc.ts'
import { attachEngine, type Engine } from '../engine/engine.ts'
import { enginePlace } from '../engine/engine-place.ts'
import { nodeForEngine } from '../engine/glibc.ts'
import { hostEngine } from '../engine/hosted-engine.ts'

const silent = pino({ level: 'silent' })
const holderEntry = join(import.meta.dirname, '../../test/support/engine-holder.ts')

let dataDir = ''
let atEnd: (() => unknown)[] = []

beforeEach(() => {
  dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'engine-test-'))
  atEnd = [() => rmSync(dataDir, { recursive: true, force: true })]
})

afterEach(async () => {
  for (const end of atEnd.reverse()) await end()
})

const attach = async (folder = dataDir) => {
  const pids: number[] = []
  const logger = pino({
    hooks: {
      logMethod([entry]) {
        if (entry !== null && typeof entry === 'object' && 'enginePid' in entry) pids.push(Number(entry.enginePid))
      },
    },
  })
  const engine: Engine = await attachEngine({ dataDir: folder, logger, heldForMs: 3_000 })
  atEnd.push(() => engine.stop())
  return { ...engine, pids }
}

const items = (uri: string) => {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 90_000 })
  atEnd.push(() => client.close())
  return client.db('test').collection<{ _id: number }>('items')
}

const untilGone = (pid: number | undefined) => expect.poll(() => isAlive(pid), { timeout: 90_000 }).toBe(false)

/** Starts another process that uses the engine of the folder. */
const startHolder = (folder = dataDir) => {
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(process.execPath, [holderEntry, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  const exited = new Promise<void>((resolve) => child.on('exit', () => resolve()))
  atEnd.push(async () => {
    child.stdin.end()
    await exited
  })
  const entries = (): { msg: string; enginePid?: number; uri?: string }[] =>
    output
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    attached: () =>
      expect
        .poll(() => entries().find((entry) => entry.msg === 'attached to the database engine')?.uri, {
          timeout: 90_000,
        })
        .toBeTruthy(),
    enginePids: () => entries().flatMap((entry) => entry.enginePid ?? []),
  }
}

describe('engines', () => {
  it('an engine accepts connections of other processes at the address that they compute from the data folder', async () => {
    const holder = startHolder()
    await holder.attached()
    const found = items(enginePlace(dataDir).uri)
    await found.insertOne({ _id: 1 })
    expect(await found.countDocuments()).toBe(1)
  })

  itLong('an engine is shared by a process that starts later and hosts no engine itself', async () => {
    const holder = startHolder()
    await holder.attached()
    const engine = await attach()
    expect(engine.pids).toEqual([])
    await items(engine.uri).insertOne({ _id: 1 })
  })

  it('an engine is shared by processes that start at the same time', async () => {
    const holders = [startHolder(), startHolder()]
    const engine = await attach()
    for (const holder of holders) await holder.attached()
    expect([...engine.pids, ...holders.flatMap((holder) => holder.enginePids())]).toHaveLength(1)
  })

  it('an engine that is killed restarts at the same address, with every acknowledged write', async () => {
    const engine = await attach()
    const written = items(engine.uri)
    const acknowledged: number[] = []
    let writing = true
    const writer = async (first: number) => {
      for (let id = first; writing; id += 4) {
        const done = await written.insertOne({ _id: id }).catch(() => undefined)
        if (done) acknowledged.push(id)
      }
    }
    const writers = [0, 1, 2, 3].map(writer)
    await expect.poll(() => acknowledged.length, { timeout: 90_000 }).toBeGreaterThan(100)
    process.kill(engine.pids[0] ?? 0, 'SIGKILL')
    const before = acknowledged.length
    await expect.poll(() => acknowledged.length, { timeout: 90_000 }).toBeGreaterThan(before + 100)
    writing = false
    await Promise.all(writers)

    expect(engine.pids).toHaveLength(2)
    const kept = new Set((await written.find().toArray()).map((item) => item._id))
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
  })

  it('an engine is taken over by an attached process when its host is killed', async () => {
    const host = startHolder()
    await host.attached()
    const others = [startHolder(), startHolder()]
    for (const other of others) await other.attached()
    const written = items(enginePlace(dataDir).uri)
    await written.insertOne({ _id: 1 })

    host.kill('SIGKILL')
    await untilGone(host.enginePids()[0])
    await expect.poll(() => others.flatMap((other) => other.enginePids()), { timeout: 90_000 }).toHaveLength(1)
    expect(await written.countDocuments()).toBe(1)
    await written.insertOne({ _id: 2 })
  })

  itLong('an engine is taken over when its host stops cleanly', async () => {
    const first = await attach()
    const holder = startHolder()
    await holder.attached()
    await first.stop()
    await expect.poll(() => holder.enginePids(), { timeout: 90_000 }).toHaveLength(1)
    await items(enginePlace(dataDir).uri).insertOne({ _id: 1 })
  })

  itLong('an engine leaves no process and no socket when stopped', async () => {
    const engine = await attach()
    const place = enginePlace(dataDir)
    expect(existsSync(place.socketPath)).toBe(true)
    await engine.stop()
    expect(isAlive(engine.pids[0])).toBe(false)
    expect(readdirSync(dataDir).sort()).toEqual(['engine', 'mongodb'])
    expect(readdirSync(place.scratchDir)).toEqual([])
  })

  itLong('a starting engine removes the files of a killed engine', async () => {
    const engine = await attach()
    process.kill(engine.pids[0] ?? 0, 'SIGKILL')
    await expect.poll(() => engine.pids, { timeout: 90_000 }).toHaveLength(2)
    expect(readdirSync(enginePlace(dataDir).scratchDir)).toHaveLength(1)
  })

  it('an engine keeps running after Ctrl-C until its host stops it', async () => {
    const engine = await attach()
    process.kill(engine.pids[0] ?? 0, 'SIGINT')
    await items(engine.uri).insertOne({ _id: 1 })
    expect(engine.pids.map(isAlive)).toEqual([true])
  })

  itLong('an engine leaves nothing running when its start is aborted', async () => {
    const leaving = new AbortController()
    const starting = attachEngine({ dataDir, logger: silent, signal: leaving.signal })
    await expect.poll(() => existsSync(join(dataDir, 'mongodb')), { interval: 1, timeout: 90_000 }).toBe(true)
    leaving.abort(new Error('no longer wanted'))
    await expect(starting).rejects.toThrow('no longer wanted')
    const engine = await attach()
    expect(engine.pids).toHaveLength(1)
  })
})

describe('data folders of engines', () => {
  it('a data folder that an engine uses at another address is rejected; the error names the path and the remedy', async () => {
    const place = enginePlace(dataDir)
    const foreign = await hostEngine({
      place: { ...place, socketPath: join(dataDir, 'elsewhere.sock') },
      command: await nodeForEngine({ logger: silent, signal: AbortSignal.timeout(60_000) }),
      logger: silent,
      signal: AbortSignal.timeout(60_000),
    })
    atEnd.push(foreign.stop)
    const attaching = attachEngine({ dataDir, logger: silent, heldForMs: 300 })
    await expect(attaching).rejects.toMatchObject({
      reason: 'held',
      message: expect.stringMatching(new RegExp(`Another MongoDB engine holds ${place.databaseDir}.*MONGODB_URI`)),
    })
  })

  itLong('a data folder whose engine does not respond is rejected', async () => {
    const engine = await attach()
    process.kill(engine.pids[0] ?? 0, 'SIGSTOP')
    atEnd.push(() => process.kill(engine.pids[0] ?? 0, 'SIGCONT'))
    await expect(attachEngine({ dataDir, logger: silent, heldForMs: 300 })).rejects.toMatchObject({ reason: 'held' })
  })

  it('a data folder that cannot be a database is rejected', async () => {
    writeFileSync(join(dataDir, 'mongodb'), 'not a folder')
    await expect(attachEngine({ dataDir, logger: silent })).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringContaining('MONGODB_URI'),
    })
  })

  it('a data folder with a path too long for a socket uses a socket in a private folder', async () => {
    const long = join(dataDir, 'a-long-folder-name-'.repeat(5), 'and-one-more')
    const engine = await attach(long)
    await items(engine.uri).insertOne({ _id: 1 })
    const place = enginePlace(long)
    expect(place.socketPath.startsWith(long)).toBe(false)
    expect(statSync(place.scratchDir).mode & 0o777).toBe(0o700)
    atEnd.unshift(() => rmSync(place.scratchDir, { recursive: true }))
  })

  it('a data folder with a percent sign in its path works', async () => {
    const folder = join(dataDir, 'a%b%20c')
    const engine = await attach(folder)
    atEnd.unshift(() => rmSync(enginePlace(folder).scratchDir, { recursive: true }))
    await items(engine.uri).insertOne({ _id: 1 })
  })

  it('a data folder with a path too long for a socket is rejected if other users can access the private folder', () => {
    const long = join(dataDir, 'a-long-folder-name-'.repeat(5))
    const { scratchDir } = enginePlace(long)
    rmSync(scratchDir, { recursive: true })
    mkdirSync(scratchDir, { mode: 0o755 })
    atEnd.push(() => rmSync(scratchDir, { recursive: true }))
    expect(() => enginePlace(long)).toThrow('no other user')
  })

  it('a data folder is created so that only its owner can access it', () => {
    enginePlace(join(dataDir, 'fresh'))
    expect(statSync(join(dataDir, 'fresh')).mode & 0o777).toBe(0o700)
  })

  it('a data folder has the same engine address under every path that names it', () => {
    expect(enginePlace(`${dataDir}/../${dataDir.split('/').at(-1)}/.`).uri).toBe(enginePlace(dataDir).uri)
    expect(enginePlace(dataDir).uri).toMatch(/^mongodb:\/\/[^/]+\/\?directConnection=true&w=1&journal=true$/)
  })
})
