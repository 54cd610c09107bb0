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

  it('are detected by the periodic check, whose first call covers a few logs', async () => {
    const scene = newScene(upTo(1))
    for (const conversationId of ['c', 'd']) await scene.open({}, { conversationId })
    scene.events.ends.mockClear()
    for (let call = 0; call < 2; call += 1) await scene.checkSome()
    expect(scene.events.ends.mock.calls.map(([ids]) => ids)).toEqual([['c', 'd']])
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

  it('a live stream keeps typing and text that grew for later, and a stream that opens gets no typing', async () => {
    let maySend = true
    const growing = { conversationId: 'c', messageId: 'm', sequence: 2, text: 'one two', length: 7 }
    const growingTexts = { in: () => [growing], follow: () => {} }
    const scene = newScene(upTo(2), { maySend: () => maySend, growingTexts })
    await scene.open()
    maySend = false
    scene.append(eventAt(3, { type: 'typing.started', transient: true, data: { author: { kind: 'agent' } } }))
    await scene.open({ afterSequence: 2 }, { id: 2 })
    scene.take()
    maySend = true
    scene.bus.emit('current')
    await settled()
    expect(scene.take().filter((call) => call.includes('typing'))).toEqual(['a event 1 typing.started e1-3'])
    maySend = false
    growing.text = 'one two three'
    growing.length = 13
    scene.bus.emit('growing', [growing])
    expect(scene.take()).toEqual([])
    maySend = true
    scene.bus.emit('current')
    await settled()
    expect(scene.take()).toEqual(['a event 1 message.grew ', 'a event 2 message.grew '])
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
