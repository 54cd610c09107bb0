import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'

const database = testDatabase()
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
})
afterAll(() => cores.stop())

const setStatus = (status: 'enabled' | 'disabled', core = cores.core) =>
  core.workspaces.setConnectionStatus(cores.connectionId, status, undefined)

describe('a connection that was disabled and enabled again', () => {
  it.each(['at once', 'when the first process died before the wake-up and the operator repeated it'])(
    'has ended its sessions for good, with and without an open stream (%s)',
    async (how) => {
      const sub = `customer-${randomUUID()}`
      const [streaming, silent] = [await cores.newSession(), await cores.newSession()]
      const verified = await cores.identify(await cores.newSession(), cores.sign({ sub }))
      await cores.send(verified, 'before')
      const streams = [await cores.openStream(streaming), await cores.openStream(streaming, cores.cores[1])]
      if (how !== 'at once') await expect(setStatus('disabled', cores.mortalCore(1))).rejects.toThrow()
      await setStatus('disabled')
      for (const stream of streams) {
        await until('the end of the stream', () => stream.ended)
        expect(stream.types).toEqual(['connection.disabled'])
      }
      await expect(cores.newSession()).rejects.toThrow('ConnectionDisabled')
      await setStatus('enabled')
      for (const core of cores.cores) {
        for (const session of [streaming, silent, verified]) {
          await expect(cores.send(session, 'late', { core })).rejects.toThrow('ConnectionDisabled')
          await expect(cores.renew(session, { core })).rejects.toThrow('ConnectionDisabled')
          await expect(cores.openStream(session, core)).rejects.toThrow('ConnectionDisabled')
        }
        await until('the connection', () =>
          cores.newSession(core).then(
            () => true,
            () => undefined,
          ),
        )
      }
      const next = await cores.identify(await cores.newSession(), cores.sign({ sub }))
      const stream = await cores.openStream(next)
      await cores.send(next, 'after')
      await until('the message', () => stream.types.filter((type) => type === 'message.accepted').length === 2)
      expect(stream.ended).toBe(false)
      expect(await cores.history(next)).toEqual(['before', 'after'])
    },
  )

  it('keeps its sessions when it is enabled while enabled', async () => {
    const session = await cores.newSession()
    await setStatus('enabled')
    expect((await cores.send(session, 'hello')).replayed).toBe(false)
  })
})
