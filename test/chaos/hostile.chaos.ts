import { readFile } from 'node:fs/promises'
import { afterAll, expect, it } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { chaosConfig } from './config.ts'
import { runHostileRound, startHostileScene } from './hostile-receivers.ts'

const config = chaosConfig()
const database = testDatabase()
const perPath = 20
/** Rounds until the worker's heap size is stable. */
const warmUp = 3
/** Normal memory difference between rounds. */
const noiseMiB = 32
let close = async () => {}
afterAll(() => close())

it('hostile destinations do not leak memory in the worker', async () => {
  const scene = await startHostileScene(database, { deadlineMs: 2_000, perPath })
  close = scene.receiver.close
  const rows: { round: number; requests: number; 'sent to it, MiB': number; 'memory after, MiB': number }[] = []
  for (let round = 1; round <= warmUp + config.HOSTILE_ROUNDS; round += 1) {
    const [requests, bytes] = [scene.receiver.requests.length, scene.receiver.bytesSent()]
    await runHostileRound(scene)
    rows.push({
      round,
      requests: scene.receiver.requests.length - requests,
      'sent to it, MiB': Math.round((scene.receiver.bytesSent() - bytes) / 2 ** 20),
      'memory after, MiB': await residentMiB(scene.worker.process().pid),
    })
  }
  console.table(rows)
  const memory = rows.slice(warmUp).map((row) => row['memory after, MiB'])
  const half = Math.floor(memory.length / 2)
  const most = (values: number[]) => Math.max(...values)
  expect(most(memory.slice(half))).toBeLessThanOrEqual(most(memory.slice(0, half)) + noiseMiB)
})

async function residentMiB(pid: number): Promise<number> {
  const [, kib] = (await readFile(`/proc/${pid}/status`, 'utf8')).match(/^VmRSS:\s+(\d+) kB/m) ?? []
  return Math.round(Number(kib) / 1024)
}
