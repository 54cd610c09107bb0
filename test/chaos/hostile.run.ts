import { afterAll, expect, it } from 'vitest'
import { residentBytes } from '../support/proc.ts'
import { testDatabase } from '../support/test-database.ts'
import { chaosConfig } from './config.ts'
import { runHostileRound, startHostileSetup } from './hostile-receivers.ts'

const config = chaosConfig()
const database = testDatabase()
const perPath = 20
/** Number of rounds at the start that are not checked, because the worker's memory may still grow. */
const warmUp = 3
/** Allowed difference of the worker's memory between two rounds. */
const noiseMiB = 32
let close = async () => {}
afterAll(() => close())

it('the worker leaks no memory while it sends to hostile destinations', async () => {
  const setup = await startHostileSetup(database, { deadlineMs: 2_000, perPath })
  close = setup.receiver.close
  const rows: { round: number; requests: number; 'sent to it, MiB': number; 'memory after, MiB': number }[] = []
  for (let round = 1; round <= warmUp + config.HOSTILE_ROUNDS; round += 1) {
    const [requests, bytes] = [setup.receiver.requests.length, setup.receiver.bytesSent()]
    await runHostileRound(setup)
    rows.push({
      round,
      requests: setup.receiver.requests.length - requests,
      'sent to it, MiB': Math.round((setup.receiver.bytesSent() - bytes) / 2 ** 20),
      'memory after, MiB': Math.round((await residentBytes(setup.worker.process().pid)) / 2 ** 20),
    })
  }
  console.table(rows)
  const memory = rows.slice(warmUp).map((row) => row['memory after, MiB'])
  const half = Math.floor(memory.length / 2)
  const most = (values: number[]) => Math.max(...values)
  expect(most(memory.slice(half))).toBeLessThanOrEqual(most(memory.slice(0, half)) + noiseMiB)
})
