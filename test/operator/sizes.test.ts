import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Costs, sizeFor } from '../../bench/capacity/sizes.ts'
import { forAll } from '../support/for-all.ts'

const partCosts = fc.record({
  idleMb: fc.integer({ min: 50, max: 400 }),
  streamKb: fc.integer({ min: 1, max: 200 }),
  messageUs: fc.integer({ min: 1, max: 2_000 }),
})
const costs: fc.Arbitrary<Costs> = fc.record({
  gateway: partCosts,
  core: partCosts,
  engineMessageUs: fc.integer({ min: 1, max: 2_000 }),
  sessionBytes: fc.integer({ min: 0, max: 5_000 }),
  messageBytes: fc.integer({ min: 0, max: 5_000 }),
})

it('the load of the busiest hour fits into half a processor and 717 MB of each part when one gateway and one core are missing', () => {
  forAll([costs, fc.integer({ min: 0, max: 2_000_000 })], {}, (measured, visitors) => {
    const size = sizeFor(visitors, measured)
    for (const [count, part] of [
      [size.gateways - 1, measured.gateway],
      [size.cores - 1, measured.core],
    ] as const) {
      expect(count).toBeGreaterThanOrEqual(1)
      expect(part.idleMb + (size.streams * part.streamKb) / 1_000 / count).toBeLessThanOrEqual(716.8 + 1e-6)
      expect((size.messagesPerSecond * part.messageUs) / 1e6 / count).toBeLessThanOrEqual(0.5 + 1e-9)
    }
  })
})

it('if 24,000 people open the chat on a day, its busiest hour has 600 streams and 8 messages a second', () => {
  const part = { idleMb: 200, streamKb: 50, messageUs: 300 }
  const size = sizeFor(24_000, {
    gateway: part,
    core: part,
    engineMessageUs: 500,
    sessionBytes: 2_000,
    messageBytes: 1_000,
  })
  expect(size).toMatchObject({ streams: 600, messagesPerSecond: 8, gateways: 2, cores: 2, diskMbPerDay: 240 })
  expect(size.gatewayMb).toBe(215)
})
