import { describe, expect, it } from 'vitest'
import { eventAt, eventsUpTo, newScene, settled, upTo } from '../test/stream-subscriptions.ts'

describe('lost wake-ups', () => {
  it('are detected by a check of all logs after a gap', async () => {
    const scene = newScene(upTo(1))
    await scene.open()
    scene.take()
    scene.log.push(eventAt(2))
    scene.bus.emit('gap')
    await settled()
    expect(scene.take()).toEqual(eventsUpTo(2, 2))
  })

  it('cause a log line if the check after a gap fails', async () => {
    const scene = newScene(upTo(1))
    await scene.open()
    scene.events.ends.mockRejectedValue(new RangeError('gone'))
    scene.bus.emit('gap')
    await settled()
    expect(scene.warn.mock.calls).toEqual([[{ reason: 'RangeError' }, 'check of event logs failed; will retry']])
  })

  it.each([
    [undefined, [['c', 'd']]],
    [2, [['c', 'd']]],
  ])('are detected by the periodic check (checkSteps %s)', async (checkSteps, expected) => {
    const scene = newScene(upTo(1), checkSteps === undefined ? {} : { checkSteps })
    for (const conversationId of ['c', 'd']) await scene.open({}, { conversationId })
    scene.events.ends.mockClear()
    for (let call = 0; call < (checkSteps ?? 1); call += 1) await scene.checkSome()
    expect(scene.events.ends.mock.calls.map(([ids]) => ids)).toEqual(expected)
  })
})

describe('while wake-ups of other cores may be missing', () => {
  it('a live stream and a replay send nothing, and both send every event once when all wake-ups have arrived', async () => {
    let maySend = true
    const scene = newScene(upTo(2), { maySend: () => maySend })
    await scene.open()
    await settled()
    scene.take()
    maySend = false
    scene.log.push(eventAt(3))
    scene.bus.emit('appended', eventAt(3))
    await scene.open({ afterSequence: 1 }, { id: 2 })
    await settled()
    expect(scene.take()).toEqual(['a opened 2 ses_1 e1-1'])
    maySend = true
    scene.bus.emit('current')
    await settled()
    const [first, second] = [1, 2].map((id) => scene.calls.filter((call) => call.includes(` ${id} `)))
    expect([first!.length, second!.length]).toEqual([1, 2])
    scene.take()
    scene.log.push(eventAt(4))
    scene.bus.emit('appended', eventAt(4))
    expect(scene.take()).toHaveLength(1)
  })

  it('a held stream still sends nothing when all wake-ups have arrived', async () => {
    const scene = newScene(upTo(2))
    const { session } = await scene.open()
    scene.take()
    scene.hold(session.sessionId)
    scene.log.push(eventAt(3))
    scene.bus.emit('appended', eventAt(3))
    scene.bus.emit('current')
    await settled()
    expect(scene.take()).toEqual([])
  })
})
