import { afterAll, beforeAll, expect, it } from 'vitest'
import { ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { type HostileSetup, hostilePaths, runHostileRound, startHostileSetup } from '../chaos/hostile-receivers.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
const perPath = 4
let setup: HostileSetup
beforeAll(async () => {
  setup = await startHostileSetup(database, { deadlineMs: 5_000, perPath })
})
afterAll(() => setup.receiver.close())

it('attempts to hostile destinations end by the deadline, and little of an endless response is read', async () => {
  const { receiver } = setup
  const paths = Object.keys(hostilePaths)
  const floods = paths.filter((path) => /endless|100-mb|flood/.test(path))
  const attempts = await runHostileRound(setup, floods)
  // The worker stops reading an endless response and closes its connection. Most of the bytes that
  // the receiver sent are then in buffers, and the worker never reads them.
  expect(receiver.bytesSent() / (floods.length * perPath)).toBeLessThan(16 * 2 ** 20)
  const others = await runHostileRound(
    setup,
    paths.filter((path) => !floods.includes(path)),
  )
  for (const [path, kind] of Object.entries(hostilePaths)) {
    const classes = (attempts.get(path) ?? others.get(path))!.map(({ responseClass }) => responseClass)
    const expected = {
      answered: [ResponseClass.ACCEPTED],
      too_large: [ResponseClass.REJECTED],
      unreadable: [ResponseClass.UNREADABLE_ANSWER],
      timeout: [ResponseClass.TIMEOUT],
      network_error: [ResponseClass.NETWORK_ERROR],
    }[kind]
    for (const each of classes) expect.soft(expected, path).toContain(each)
  }
  expect(setup.worker.process().output()).not.toMatch(/"level":(50|60)/)
})
