import { describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { newSubject, testCores } from '../test/cores.ts'
import { setConnectionStatus } from '../workspaces/workspaces.ts'

const cores = testCores({ count: 2 })

const setStatus = (status: 'enabled' | 'disabled', core = cores.core) =>
  setConnectionStatus(core, cores.connectionId, status, undefined)

describe('a connection', () => {
  it.each(someOf(['by one call', 'by a repeat after the first process died before the wake-up'], 1))(
    'keeps its sessions ended after it was disabled %s and enabled again',
    async (how) => {
      const sub = newSubject()
      const [streaming, silent] = [await cores.newSession(), await cores.newSession()]
      const verified = await cores.newVerified(sub)
      await cores.send(verified, 'before')
      const streams = [await cores.openStream(streaming), await cores.openStream(streaming, cores.cores[1])]
      if (how !== 'by one call') await expect(setStatus('disabled', cores.mortalCore(1))).rejects.toThrow()
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
      const next = await cores.newVerified(sub)
      const stream = await cores.openStream(next)
      await cores.send(next, 'after')
      await until('the message', () => stream.types.filter((type) => type === 'message.accepted').length === 2)
      expect(stream.ended).toBe(false)
      expect(await cores.history(next)).toEqual(['before', 'after'])
    },
  )

  it('keeps its sessions if an operator enables it while it is already enabled', async () => {
    const session = await cores.newSession()
    await setStatus('enabled')
    expect((await cores.send(session, 'hello')).replayed).toBe(false)
  })
})
