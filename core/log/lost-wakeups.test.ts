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
    [2, [['c'], ['d']]],
  ])('are detected by the periodic check (checkSteps %s)', async (checkSteps, expected) => {
    const scene = newScene(upTo(1), checkSteps === undefined ? {} : { checkSteps })
    for (const conversationId of ['c', 'd']) await scene.open({}, { conversationId })
    scene.events.ends.mockClear()
    for (const _ of expected) await scene.checkSome()
    expect(scene.events.ends.mock.calls.map(([ids]) => ids)).toEqual(expected)
  })
})
