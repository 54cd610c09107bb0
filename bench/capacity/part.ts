import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { amount, type Part, scratchFolder, usageByRole } from '../measure.ts'
import { type Service, startService } from '../service.ts'
import type { Table } from '../table.ts'
import { type BenchVisitor, createVisitors, inLanes, pageHeaders, sendMessage, widgetPath } from '../visitors.ts'
import { type PartCosts, sizesTable } from './sizes.ts'

/** Wait before each measurement, so that memory use is stable. */
const settleMs = 5_000
const atOnce = 64
const body = 'Do you have these in a smaller size, and could you send them to Graz before the weekend? '.padEnd(
  100,
  '.',
)
const roles = ['gateway', 'core', 'engine'] as const

/**
 * Measures memory per stream, processor time per message and disk per session and message in one round, and
 * says what a day needs.
 */
export const part: Part = async ({ quick, log }) => {
  const sizes = quick ? { streams: 500, messages: 1_000 } : { streams: 3_000, messages: 10_000 }
  const dataDir = await scratchFolder('capacity')
  let service = await startService({ dataDir })
  /** Starts all again, and returns the bytes on disk. Only a stopped engine has written all files. */
  const restart = async () => {
    await service.stop()
    const bytes = await bytesOf(dataDir)
    service = await startService({ dataDir })
    return bytes
  }
  const port = () => service.access.ports[0]!
  const write = (visitors: BenchVisitor[]) =>
    inLanes(port(), visitors, (on, visitor) => sendMessage(on, visitor, body), atOnce)

  const bytesEmpty = await restart()
  log(`${sizes.streams} sessions`)
  const visitors = await createVisitors(port(), service.access.siteKey, sizes.streams)
  // Otherwise streams would reuse memory that was freed after the session calls.
  const sessionBytes = ((await restart()) - bytesEmpty) / sizes.streams
  await delay(settleMs)

  log(`${sizes.streams} streams`)
  const quiet = await usageByRole(service)
  const streams: { destroy(): unknown }[] = []
  await inLanes(port(), visitors, async (_, visitor) => void streams.push(await openStream(service, visitor)))
  await delay(settleMs)
  const streaming = await usageByRole(service)
  for (const stream of streams) stream.destroy()
  await delay(settleMs)

  log(`${sizes.messages} messages`)
  const bytesBefore = await restart()
  const first = visitors.slice(0, atOnce)
  await write(first)
  const before = await usageByRole(service)
  await write(Array.from({ length: sizes.messages }, (_, index) => visitors[index % visitors.length]!))
  const after = await usageByRole(service)
  await service.stop()
  const messageBytes = ((await bytesOf(dataDir)) - bytesBefore) / (sizes.messages + atOnce)

  const costsOf = (role: (typeof roles)[number]): PartCosts => ({
    idleMb: quiet.get(role)!.residentMb,
    streamKb: ((streaming.get(role)!.residentMb - quiet.get(role)!.residentMb) * 1_000) / sizes.streams,
    messageUs: ((after.get(role)!.cpuSeconds - before.get(role)!.cpuSeconds) * 1e6) / sizes.messages,
  })
  const costs = { gateway: costsOf('gateway'), core: costsOf('core'), engine: costsOf('engine') }
  const row = (name: string, figure: keyof PartCosts, unit: string, digits = 0) => ({
    name,
    cells: roles.map((role) => ({ values: [costs[role][figure]], unit, digits })),
  })
  const table: Table = {
    title: 'Memory, CPU time and disk space per visitor and message',
    columns: ['', ...roles],
    rows: [
      row(`memory per open stream (${amount(sizes.streams)} open)`, 'streamKb', 'kB', 1),
      row('memory without streams', 'idleMb', 'MB'),
      row(`CPU time per message (${amount(sizes.messages)} messages, ${atOnce} concurrent)`, 'messageUs', 'µs'),
    ],
    notes: [
      `On disk a session takes ${Math.round(sessionBytes)} bytes and a message of 100 characters ${Math.round(messageBytes)} bytes, indexes included, as the embedded engine leaves its files when it stops.`,
    ],
  }
  return [table, sizesTable({ ...costs, engineMessageUs: costs.engine.messageUs, sessionBytes, messageBytes })]
}

async function openStream({ access }: Service, { accessGrant }: BenchVisitor) {
  const headers = { ...pageHeaders, Authorization: `Bearer ${accessGrant}` }
  const url = `http://127.0.0.1:${access.ports[0]}${widgetPath}/events?afterSequence=0`
  const request = get(url, { headers, agent: false }).on('error', () => {})
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  if (answer.statusCode !== 200) throw new Error(`/events answered ${answer.statusCode}`)
  answer.on('error', () => {}).resume()
  return request
}

/** Returns the size of a folder without the journal, whose size changes all the time. */
const bytesOf = async (folder: string): Promise<number> =>
  Number.parseInt((await promisify(execFile)('du', ['-sb', '--exclude=*journal*', folder])).stdout, 10)
