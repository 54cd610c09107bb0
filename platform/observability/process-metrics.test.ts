import { expect, it } from 'vitest'
import { createProcessMetrics } from './process-metrics.ts'

/** Returns the values of the metrics that have the label `part`, without the build information. */
async function valuesOf(parts: Parameters<typeof createProcessMetrics>[0]) {
  const text = await createProcessMetrics(parts).registry.metrics()
  const samples = [...text.matchAll(/^service_(\w+)\{part="(\w+)"\} (\S+)$/gm)]
  return samples.map(([, name, part, value]) => `${name} ${part} ${value}`).sort()
}

it('has the expiry of a token and of a certificate, and whether the TLS files on disk are invalid', async () => {
  const expiresAt = Date.UTC(2030, 0, 1)
  const seconds = expiresAt / 1000
  expect(
    await valuesOf([
      { part: 'gateway', tokenExpiresAt: expiresAt, tls: { expiresAt: () => expiresAt, isStale: () => true } },
      { part: 'core', tls: { expiresAt: () => expiresAt + 1000, isStale: () => false } },
      { part: 'delivery', tokenExpiresAt: Number.POSITIVE_INFINITY },
    ]),
  ).toEqual(
    [
      `tls_expires_timestamp_seconds core ${seconds + 1}`,
      `tls_expires_timestamp_seconds gateway ${seconds}`,
      'tls_stale core 0',
      'tls_stale gateway 1',
      `token_expires_timestamp_seconds gateway ${seconds}`,
    ].sort(),
  )
})

it('reads whether TLS files are invalid without a read of another metric', async () => {
  const { registry } = createProcessMetrics([{ part: 'core', tls: { expiresAt: () => 0, isStale: () => true } }])
  expect(await registry.getSingleMetricAsString('service_tls_stale')).toContain('{part="core"} 1')
})
