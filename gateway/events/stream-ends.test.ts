import { describe, expect, test } from 'vitest'
import { unavailable } from '../errors.ts'
import { newScene } from '../test/test-event-streams.ts'
import { UNSENT_MAX_BYTES } from './event-streams.ts'

const nextTurn = () => new Promise(setImmediate)

describe('the log line of an ended stream', () => {
  const ended = (reason: string, correlationId = 'cor_1') => ({
    correlationId,
    sessionId: 'ses_1',
    conversationId: 'cnv_1',
    reason,
  })

  test.each<[string, (scene: ReturnType<typeof newScene>, asked: ReturnType<typeof newScene>['begin']) => void]>([
    ['client', (_, begin) => void begin().socket.destroy()],
    ['replaced', (_, begin) => void [begin(), begin(), begin()]],
    [
      'age',
      (scene, begin) => {
        scene.start()
        begin()
        scene.advance(102)
      },
    ],
    [
      'shutdown',
      (scene, begin) => {
        begin()
        scene.stop()
      },
    ],
    ...['core', 'session.closed', 'session.revoked', 'visitor.banned', 'OriginNotAllowed'].map(
      (by) =>
        [
          by,
          (_: unknown, begin: ReturnType<typeof newScene>['begin']) => {
            const { sink, reader } = begin()
            sink.ended(reader, undefined, by === 'core' ? undefined : by)
          },
        ] as [string, (scene: unknown, begin: ReturnType<typeof newScene>['begin']) => void],
    ),
  ])('has the ids of its request, session and conversation, and the reason %s', (reason, endOne) => {
    const scene = newScene()
    endOne(scene, scene.begin)
    expect(scene.logged).toEqual([ended(reason)])
  })

  test('has the reason slow if its reader was disconnected', async () => {
    const { begin, logged } = newScene()
    const { socket, sink, reader } = begin()
    socket.writableLength = UNSENT_MAX_BYTES + 1
    sink.write(reader, Buffer.from('x'))
    await nextTurn()
    expect(logged).toEqual([ended('slow')])
  })

  test('is not written for a refused stream', () => {
    const { ask, logged } = newScene()
    const { sink, reader, outcome } = ask()
    sink.ended(reader, unavailable())
    void outcome
    expect(logged).toEqual([])
  })
})
