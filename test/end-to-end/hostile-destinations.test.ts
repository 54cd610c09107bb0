import { afterAll, beforeAll, expect, it } from 'vitest'
import { ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { type HostileScene, hostilePaths, runHostileRound, startHostileScene } from '../chaos/hostile-receivers.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()
const perPath = 4
let scene: HostileScene
beforeAll(async () => {
  scene = await startHostileScene(database, { deadlineMs: 1_500, perPath })
})
afterAll(() => scene.receiver.close())

it('attempts to hostile destinations end by the deadline, and their floods are barely read', async () => {
  const { receiver } = scene
  const paths = Object.keys(hostilePaths)
  const floods = paths.filter((path) => /endless|100-mb|header-flood/.test(path))
  const attempts = await runHostileRound(scene, floods)
  // The worker cuts floods off. Sent bytes are mostly in buffers between receiver and worker.
  expect(receiver.bytesSent() / (floods.length * perPath)).toBeLessThan(16 * 2 ** 20)
  const others = await runHostileRound(
    scene,
    paths.filter((path) => !floods.includes(path)),
  )
  for (const [path, kind] of Object.entries(hostilePaths)) {
    const classes = (attempts.get(path) ?? others.get(path))!.map(({ responseClass }) => responseClass)
    const expected = {
      answered: [ResponseClass.ACCEPTED, ResponseClass.SERVER_ERROR],
      timeout: [ResponseClass.TIMEOUT],
      network_error: [ResponseClass.NETWORK_ERROR],
    }[kind]
    for (const each of classes) expect.soft(expected, path).toContain(each)
  }
  expect(scene.worker.process().output()).not.toMatch(/"level":(50|60)/)
})
