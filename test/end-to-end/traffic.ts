import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

/** Sends messages continuously until stopped. */
export function startTraffic(ada: Visitor) {
  let stopped = false
  const sent: string[] = []
  const rejections: unknown[] = []
  const writing = (async () => {
    while (!stopped) {
      const body = `message ${sent.length}`
      const { status, body: answer } = await ada.sendUntilAccepted(body)
      if (status === 202) sent.push(body)
      else rejections.push(answer?.code)
      await delay(20)
    }
  })()
  return {
    sent,
    rejections,
    /** Waits until this many more messages are accepted. */
    async expectMore(more = 5) {
      const target = sent.length + more
      await until('messages to be accepted', () => sent.length >= target || rejections.length > 0)
      expect(rejections).toEqual([])
    },
    async stop() {
      stopped = true
      await writing
    },
  }
}
