import { readdir, readFile, stat } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort, startProcess } from '../../test/support/processes.ts'
import type { Part } from '../part.ts'
import type { Table } from '../table.ts'
import { childrenOf, usageOf } from '../usage.ts'
import { scratchFolder } from '../workspace.ts'
import { type PartCosts, sizesTable } from './sizes.ts'
import { type CapacityVisitor, createVisitor } from './visitors.ts'

/** Time in milliseconds that the bench waits before it measures, so that memory use is stable. */
const settleMs = 5_000
const atOnce = 64

/**
 * Measures memory per open stream, CPU time per message, and disk space per session and message, and
 * says what a day of so many people needs.
 * Runs one round. The option for the number of rounds has no effect.
 */
export const capacityPart: Part = async ({ quick, log }) => {
  const sizes = quick ? { streams: 500, messages: 1_000 } : { streams: 3_000, messages: 10_000 }
  const dataDir = await scratchFolder('capacity')
  const ports = { core: await freePort(), gateway: await freePort() }
  const env = { DATA_DIR: dataDir, LOG_LEVEL: 'warn', RATE_LIMIT_FACTOR: '1000000' }
  const part = (entry: string, port: number, settings: Record<string, string>) =>
    startProcess({ entry, env: { ...env, ...settings }, readyUrl: `http://127.0.0.1:${port}/readyz` })
  const coreUrl = `http://127.0.0.1:${ports.core}`
  let core = await part('dev/core.ts', ports.core, { CORE_PORT: String(ports.core) })
  const gatewaySettings = { GATEWAY_PORT: String(ports.gateway), CORE_URLS: coreUrl }
  let gateway = await part('gateway/main.ts', ports.gateway, gatewaySettings)
  const { siteKey, origin } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  const site = { gatewayUrl: `http://127.0.0.1:${ports.gateway}`, origin, siteKey }
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  /**
   * Returns CPU time and memory of each process. The values of the core exclude the database
   * engine, which is a child process of the core.
   */
  const usage = async () => {
    const [engine = 0] = await childrenOf(core.pid)
    const [all, ofEngine, ofGateway] = await Promise.all([
      usageOf([core.pid]),
      usageOf([engine]),
      usageOf([gateway.pid]),
    ])
    return {
      gateway: ofGateway,
      core: {
        cpuSeconds: all.cpuSeconds - ofEngine.cpuSeconds,
        residentMb: all.residentMb - ofEngine.residentMb,
      },
      engine: ofEngine,
    }
  }

  // Only a stopped engine has written all files.
  await core.stop()
  const bytesEmpty = await bytesOf(dataDir)
  core = await part('dev/core.ts', ports.core, { CORE_PORT: String(ports.core) })

  log(`${sizes.streams} sessions`)
  const visitors: CapacityVisitor[] = []
  await inTurn(sizes.streams, async () => void visitors.push(await createVisitor(site, agent)))
  // Restarts both processes. Otherwise, streams would reuse memory that was freed after the session
  // calls.
  await gateway.stop()
  await core.stop()
  const sessionBytes = ((await bytesOf(dataDir)) - bytesEmpty) / sizes.streams
  core = await part('dev/core.ts', ports.core, { CORE_PORT: String(ports.core) })
  gateway = await part('gateway/main.ts', ports.gateway, gatewaySettings)
  await delay(settleMs)

  log(`${sizes.streams} streams`)
  const quiet = await usage()
  await inTurn(visitors.length, (index) => visitors[index]!.openStream())
  await delay(settleMs)
  const streaming = await usage()
  for (const visitor of visitors) visitor.closeStream()
  await delay(settleMs)

  log(`${sizes.messages} messages`)
  const restart = async () => {
    await core.stop()
    const bytes = await bytesOf(dataDir)
    core = await part('dev/core.ts', ports.core, { CORE_PORT: String(ports.core) })
    await inTurn(atOnce, (index) => visitors[index]!.write().catch(() => {}))
    return bytes
  }
  const bytesBefore = await restart()
  const before = await usage()
  await inTurn(sizes.messages, (index) => visitors[index % visitors.length]!.write())
  const after = await usage()
  await core.stop()
  const bytesAfter = await bytesOf(dataDir)
  await gateway.stop()
  agent.destroy()

  const messageBytes = (bytesAfter - bytesBefore) / (sizes.messages + atOnce)
  const parts = ['gateway', 'core', 'engine'] as const
  const costsOf = (name: (typeof parts)[number]) => ({
    idleMb: quiet[name].residentMb,
    streamKb: ((streaming[name].residentMb - quiet[name].residentMb) * 1_000) / sizes.streams,
    messageUs: ((after[name].cpuSeconds - before[name].cpuSeconds) * 1e6) / sizes.messages,
  })
  const costs = { gateway: costsOf('gateway'), core: costsOf('core'), engine: costsOf('engine') }
  const row = (name: string, figure: keyof PartCosts, unit: string, digits = 0) => ({
    name,
    cells: parts.map((part) => ({ values: [costs[part][figure]], unit, digits })),
  })
  const table: Table = {
    title: 'Memory, CPU time and disk space per visitor and message',
    columns: ['', ...parts],
    rows: [
      row(`memory per open stream (${sizes.streams.toLocaleString('en')} open)`, 'streamKb', 'kB', 1),
      row('memory without streams', 'idleMb', 'MB'),
      row(
        `CPU time per message (${sizes.messages.toLocaleString('en')} messages, ${atOnce} concurrent)`,
        'messageUs',
        'µs',
      ),
    ],
    notes: [
      `On disk a session takes ${Math.round(sessionBytes)} bytes and a message of 100 characters ${Math.round(messageBytes)} bytes, indexes included, as the embedded engine leaves its files when it stops.`,
    ],
  }
  return [table, sizesTable({ ...costs, engineMessageUs: costs.engine.messageUs, sessionBytes, messageBytes })]
}

async function inTurn(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/**
 * Returns the total size of the files in a folder, in bytes. Excludes the journal, because its size
 * changes all the time.
 */
async function bytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !/journal/.test(join(entry.parentPath, entry.name)))
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
