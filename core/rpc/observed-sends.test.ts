import { pino } from 'pino'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ServiceError } from '../errors.ts'
import type { Appended } from '../log/event-log.ts'
import { createCoreMetrics } from '../metrics.ts'
import { observeSends } from './messaging.ts'

it('sends of a second or longer are logged with their correlation id, also those that fail', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const lines: object[] = []
  const logger = pino({ level: 'warn', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const metrics = createCoreMetrics()
  const observed = observeSends({ metrics, logger })
  const after = async (ms: number, outcome: () => Appended) => {
    const sending = new Promise((resolve) => setTimeout(resolve, ms)).then(outcome)
    const result = observed('visitor', `request-${ms}`, sending).catch(() => {})
    await vi.advanceTimersByTimeAsync(ms)
    await result
  }
  const sent = () => ({ replayed: false }) as Appended
  await after(999, sent)
  await after(1_000, sent)
  await after(2_000, () => {
    throw new ServiceError('ServiceUnavailable')
  })
  expect(lines).toMatchObject([
    { msg: 'slow send', correlationId: 'request-1000', author: 'visitor', result: 'accepted', durationMs: 1_000 },
    { msg: 'slow send', correlationId: 'request-2000', result: 'ServiceUnavailable', durationMs: 2_000 },
  ])
  const { values } = await metrics.sends.get()
  expect(values.map(({ labels, value }) => [labels.result, value])).toEqual([
    ['accepted', 2],
    ['ServiceUnavailable', 1],
  ])
})
