import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createPace } from './pace.ts'

const forever = 2 ** 30
const work = () => delay(10)

describe('a pace', () => {
  it('lets the work take its share of the time at most', async () => {
    const paced = createPace({ share: 1 / 5 })
    const began = performance.now()
    let worked = 0
    for (let piece = 0; piece < 5; piece += 1) {
      await paced(async () => {
        const from = performance.now()
        if (piece > 0) expect(worked / (from - began)).toBeLessThanOrEqual(0.21)
        await work()
        worked += performance.now() - from
      })
    }
  })

  it('limits pieces that run at the same time to the share together', async () => {
    const paced = createPace({ share: 1 / 5 })
    const began = performance.now()
    let worked = 0
    async function repeat(workMs: number) {
      for (let piece = 0; piece < 3; piece += 1) {
        await paced(async () => {
          const from = performance.now()
          if (piece > 0) expect(worked / (from - began)).toBeLessThanOrEqual(0.26)
          await delay(workMs)
          worked += performance.now() - from
        })
      }
    }
    await Promise.all([repeat(1), repeat(10), repeat(20)])
  })

  it('runs the first piece at once, and skips a pause with `atOnce`', async () => {
    const paced = createPace({ everyMs: forever })
    expect(await paced(async () => 1)).toBe(1)
    expect(await paced(async () => 2, { atOnce: true })).toBe(2)
  })

  it('ends its pauses when its signal, or the signal of the piece, aborts', async () => {
    for (const isOfPiece of [true, false]) {
      const ended = new AbortController()
      const paced = createPace({ everyMs: forever, ...(!isOfPiece && { signal: ended.signal }) })
      await paced(work)
      const next = paced(async () => 'done', isOfPiece ? { signal: ended.signal } : {})
      ended.abort()
      expect(await next).toBe('done')
    }
  })

  it('pauses at most `maxPauseMs`, also after a piece that fails', async () => {
    const paced = createPace({ share: 1 / forever, maxPauseMs: 1 })
    await expect(paced(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    await paced(work)
    expect(await paced(async () => 'done')).toBe('done')
  })
})
