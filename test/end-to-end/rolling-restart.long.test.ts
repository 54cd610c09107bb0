import { expect, it } from 'vitest'
import { runWith } from '../chaos/run.ts'
import type { Part } from '../chaos/service.ts'

/** Time between SIGTERM and SIGKILL that process managers usually give. */
const graceMs = 10_000

it('no message is lost or duplicated when every process is restarted in turn under load', async () => {
  const stops: { name: string; ms: number; code: number | null }[] = []
  const report = await runWith({ seed: 1, arrivalSeconds: 8, visitors: 8, say: () => {} }, async (service) => {
    const { gateways, cores, workers } = service
    for (const part of [...gateways, ...cores, ...workers] as Part[]) {
      stops.push({ name: part.name, ...(await part.stop()) })
      await part.start()
    }
  })
  expect(report.violations).toEqual([])
  expect(report.operations).toBeGreaterThan(100)
  expect(stops).toHaveLength(6)
  for (const { name, ms, code } of stops) {
    expect({ name, code }).toEqual({ name, code: 0 })
    expect(ms).toBeLessThan(graceMs)
  }
})
