import { describe, expect, it } from 'vitest'
import {
  epoch,
  eventAt,
  eventsUpTo,
  long,
  newScene,
  occurredAt,
  ofSession,
  settled,
  upTo,
} from '../test/stream-subscriptions.ts'
import { type StreamEvent, toStreamEvent } from './model.ts'
import { type ReplayStart, replayPage } from './replay-window.ts'

describe('a stream without missed events', () => {
  it('goes live at the end of the log', async () => {
    const scene = newScene(upTo(3))
    const subscription = await scene.open()
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-3'])
    expect(subscription).toMatchObject({ mode: 'live', position: 3, isOpen: true, isHeld: false, replayed: 0 })
    expect(scene.replayWindow.resolveStart.mock.calls).toEqual([['c', { epoch, head: 3, start: {} }]])
    expect(scene.replayWindow.read).not.toHaveBeenCalled()
    scene.append(eventAt(4))
    expect(scene.take()).toEqual(['a event 1 agent.unassigned e1-4'])
    expect(await scene.replays()).toEqual({ count: 1, sum: 0 })
  })

  it('sends no events up to its start position, even if this core receives them later', async () => {
    const scene = newScene(upTo(3))
    await scene.open({ afterSequence: 5 })
    for (const sequence of [4, 5, 6]) scene.append(eventAt(sequence))
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-5', 'a event 1 agent.unassigned e1-6'])
  })

  it('receives events that other cores write', async () => {
    const scene = newScene(upTo(3))
    await scene.open()
    scene.log.push(eventAt(4))
    scene.bus.emit('advanced', 'c', { sequence: 4, closed: false })
    await settled()
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-3', 'a event 1 agent.unassigned e1-4'])
  })
})

describe('a replay', () => {
  it('sends the missed events, then live ones', async () => {
    const scene = newScene(upTo(5))
    const subscription = await scene.open({ afterSequence: 2 })
    scene.append(eventAt(6))
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-2', ...eventsUpTo(6, 3)])
    expect(scene.replayWindow.read.mock.calls).toEqual([['c', 2, 5, replayPage, undefined]])
    expect(await scene.replays()).toEqual({ count: 1, sum: 3 })
    expect(subscription.replayed).toBe(0)
  })

  it('sends the page that was read to find its start, and does not read that page again', async () => {
    const scene = newScene(upTo(3))
    const page = [eventAt(2), eventAt(3)].map(toStreamEvent)
    scene.replayWindow.resolveStart.mockResolvedValue({ state: 'ready', sequence: 1, page })
    await scene.open({ afterSequence: 1 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-1', ...eventsUpTo(3, 2)])
    expect(scene.replayWindow.read).not.toHaveBeenCalled()
  })

  it('reads one page after another', async () => {
    const scene = newScene(upTo(2 * replayPage + 1))
    await scene.open({ afterSequence: 0 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-0', ...eventsUpTo(2 * replayPage + 1)])
    expect(scene.replayWindow.read.mock.calls.map(([, after]) => after)).toEqual([0, replayPage, 2 * replayPage])
  })

  it('reports the end of the log as its position if the last events are transient', async () => {
    const scene = newScene([...upTo(2), eventAt(4, { transient: true })])
    const subscription = await scene.open({ afterSequence: 0 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-0', ...eventsUpTo(2), 'a advanced 1 4'])
    expect(subscription).toMatchObject({ mode: 'live', position: 4 })
  })

  it('omits events of other sessions and reports their sequences as the new position', async () => {
    const scene = newScene([
      ...upTo(1),
      ofSession(2, 'ses_2'),
      ofSession(3, 'ses_1'),
      ofSession(4, 'ses_2', 'session.closed'),
    ])
    await scene.open({ afterSequence: 0 })
    expect(scene.take().slice(2)).toEqual(['a event 1 session.identified e1-3', 'a advanced 1 4'])
    expect(await scene.replays()).toEqual({ count: 1, sum: 2 })
  })

  it('ends after the event that ends its session', async () => {
    const scene = newScene([...upTo(1), ofSession(2, 'ses_1', 'session.closed'), eventAt(3)])
    await scene.open({ afterSequence: 0 })
    expect(scene.take().slice(2)).toEqual(['a event 1 session.closed e1-2', 'a closed 1'])
    expect(scene.observed).toEqual(['opened 1', 'ended 1'])
  })

  it('pauses after 64 KiB until it is resumed', async () => {
    const scene = newScene(upTo(5).map((event) => ({ ...event, ...long })))
    const subscription = await scene.open({ afterSequence: 0 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-0', ...eventsUpTo(2), 'a paused 1'])
    expect(subscription.mode).toBe('paused')
    scene.append(eventAt(6))
    expect(scene.take()).toEqual([])
    scene.resume(subscription)
    scene.resume(subscription)
    await settled()
    expect(scene.take()).toEqual([...eventsUpTo(4, 3), 'a paused 1'])
    scene.resume(subscription)
    await settled()
    expect(scene.take()).toEqual(eventsUpTo(6, 5))
    scene.resume(subscription)
    await settled()
    expect(scene.take()).toEqual([])
    expect(await scene.replays()).toEqual({ count: 1, sum: 6 })
  })

  it.each([
    [0, [...eventsUpTo(1), 'a paused 1']],
    [1, [...eventsUpTo(2), 'a paused 1']],
  ])('pauses after the event that makes it 64 KiB long (first event %i characters shorter)', async (less, expected) => {
    const bytes = (label: string) =>
      JSON.stringify({
        sequence: 1,
        type: 'agent.unassigned',
        category: 'informational',
        occurredAt,
        data: { label },
      })
    const label = 'x'.repeat(64 * 1024 - bytes('').length - less)
    const scene = newScene([eventAt(1, { data: { label } }), ...upTo(2).slice(1)])
    await scene.open({ afterSequence: 0 })
    expect(scene.take().slice(1)).toEqual(expected)
  })

  it('ends with an error when the log cannot be read', async () => {
    const scene = newScene(upTo(2))
    scene.replayWindow.read.mockRejectedValue(new Error('gone'))
    await scene.open({ afterSequence: 0 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-0', 'a closed 1 Error: gone'])
    expect(await scene.openCount()).toBe(0)
  })

  it.each([
    ['succeeds', undefined],
    ['fails', new Error('gone')],
  ])('sends nothing after its stream was closed during a read that %s', async (_, error) => {
    const scene = newScene(upTo(2))
    const page = Promise.withResolvers<StreamEvent[]>()
    scene.replayWindow.read.mockReturnValue(page.promise)
    const subscription = await scene.open({ afterSequence: 0 })
    scene.close(subscription)
    if (error) page.reject(error)
    else page.resolve(upTo(2).map(toStreamEvent))
    await settled()
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-0'])
    expect(subscription.mode).toBe('ended')
  })
})

describe('a live event', () => {
  it('is encoded once and sent once to each sink', async () => {
    const scene = newScene()
    for (const [id, sink] of [
      [1, 'a'],
      [2, 'a'],
      [3, 'b'],
    ] as const)
      await scene.open({}, { id, sink })
    scene.take()
    scene.append(eventAt(1))
    expect(scene.take()).toEqual(['a event 1,2 agent.unassigned e1-1', 'b event 3 agent.unassigned e1-1'])
    expect(scene.sent[1]).toBe(scene.sent[0])
    scene.append(eventAt(2))
    expect(scene.take()).toEqual(['a event 1,2 agent.unassigned e1-2', 'b event 3 agent.unassigned e1-2'])
  })

  it('of one session is sent to the streams of that session, and other streams only advance their position', async () => {
    const scene = newScene()
    await scene.open({}, { id: 1, sessionId: 'ses_1' })
    await scene.open({}, { id: 2, sessionId: 'ses_2' })
    await scene.open({}, { id: 3, sessionId: 'ses_2', sink: 'b' })
    scene.take()
    scene.append(ofSession(1, 'ses_1'))
    expect(scene.take()).toEqual(['a event 1 session.identified e1-1', 'a advanced 2 1', 'b advanced 3 1'])
    scene.append(ofSession(2, 'ses_1', 'session.closed'))
    expect(scene.take()).toEqual(['a event 1 session.closed e1-2', 'a advanced 2 2', 'b advanced 3 2', 'a closed 1'])
    expect(await scene.openCount()).toBe(2)
    scene.append(eventAt(3))
    expect(scene.take()).toEqual(['a event 2 agent.unassigned e1-3', 'b event 3 agent.unassigned e1-3'])
  })
})

describe('a stream whose start requires a reset', () => {
  it('sends one reset, whose position is the end of the log, and ends', async () => {
    const scene = newScene(upTo(3))
    const reset: ReplayStart = { state: 'reset_required', reason: 'window_exceeded', at: occurredAt }
    scene.replayWindow.resolveStart.mockResolvedValue(reset)
    await scene.open({ afterSequence: 0 })
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-3', 'a event 1 replay.reset.required e1-3', 'a closed 1'])
    expect(JSON.parse(scene.sent[0]!.json).data.reason).toBe('window_exceeded')
    expect(await scene.resets()).toMatchObject([{ labels: { reason: 'window_exceeded' }, value: 1 }])
    expect(await scene.openCount()).toBe(0)
  })
})

describe('an open stream', () => {
  it('is counted as open until it is closed, and a second close has no effect', async () => {
    const scene = newScene(upTo(1))
    const subscription = await scene.open()
    expect(await scene.openCount()).toBe(1)
    scene.close(subscription)
    scene.close(subscription)
    scene.append(eventAt(2))
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-1'])
    expect(scene.observed).toEqual(['opened 1', 'ended 1'])
    expect(await scene.openCount()).toBe(0)
    scene.refuseSession('ses_1', 'refused')
    expect(scene.take()).toEqual([])
  })

  it('is closed if its start position cannot be found', async () => {
    const scene = newScene(upTo(1))
    scene.replayWindow.resolveStart.mockRejectedValue(new Error('gone'))
    await expect(scene.open()).rejects.toThrow('gone')
    expect(scene.take()).toEqual([])
    expect(scene.observed).toEqual(['opened 1', 'ended 1'])
    expect(await scene.openCount()).toBe(0)
  })

  it('ends right after it opened if its session ended during the opening', async () => {
    const scene = newScene(upTo(3))
    const start = Promise.withResolvers<ReplayStart>()
    scene.replayWindow.resolveStart.mockReturnValue(start.promise)
    const opening = scene.open()
    await settled()
    scene.refuseSession('ses_1', 'refused')
    expect(scene.take()).toEqual([])
    start.resolve({ state: 'ready', sequence: 1 })
    await opening
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-1', 'a closed 1 refused'])
  })

  it('ends with `session.revoked` when its session is revoked, although that event is not in the log', async () => {
    const scene = newScene(upTo(3))
    await scene.open()
    scene.endSession('ses_1', 'session.revoked')
    expect(scene.take()).toEqual(['a opened 1 ses_1 e1-3', 'a event 1 session.revoked e1-3', 'a closed 1'])
    expect(JSON.parse(scene.sent[0]!.json).occurredAt).toBe(occurredAt.toISOString())
  })
})

describe('a paused stream', () => {
  it('sends nothing while it is paused, and sends the missed events afterwards', async () => {
    const scene = newScene(upTo(1))
    await scene.open()
    scene.take()
    scene.hold('ses_1')
    scene.append(eventAt(2))
    expect(scene.take()).toEqual([])
    scene.release('ses_1')
    await settled()
    scene.append(eventAt(3))
    expect(scene.take()).toEqual(eventsUpTo(3, 2))
    expect(scene.replayWindow.read.mock.calls).toEqual([['c', 1, 2, replayPage, true]])
  })

  it('sends no event of a running replay until the pause ends', async () => {
    const scene = newScene(upTo(3))
    const page = Promise.withResolvers<StreamEvent[]>()
    scene.replayWindow.read.mockReturnValueOnce(page.promise)
    const subscription = await scene.open({ afterSequence: 1 })
    scene.take()
    scene.hold('ses_1')
    page.resolve([eventAt(2), eventAt(3)].map(toStreamEvent))
    await settled()
    expect(scene.take()).toEqual([])
    expect(subscription.mode).toBe('live')
    scene.release('ses_1')
    await settled()
    expect(scene.take()).toEqual(eventsUpTo(3, 2))
  })
})
