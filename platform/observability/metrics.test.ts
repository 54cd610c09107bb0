import { describe, expect, it } from 'vitest'
import { freePort } from '../../test/support/free-port.ts'
import { createMetricSet, readAtScrape } from './metrics.ts'
import { serveMetrics } from './metrics-server.ts'

const scraped = { METRICS_HOST: '127.0.0.1' }

describe('gauges of `readAtScrape`', () => {
  it('gauges of `readAtScrape` are set by one call of `read` per scrape, and are missing while `read` fails', async () => {
    const { registry, gauge } = createMetricSet({ first: 'One.', second: 'Another.' })
    const gauges = [gauge('first'), gauge('second')]
    let asked = 0
    let isAway = false
    readAtScrape(gauges, async () => {
      asked += 1
      if (isAway) throw new Error('away')
      return [1, 2]
    })
    expect(await registry.metrics()).toMatch(/^first 1$[\s\S]*^second 2$/m)
    expect(asked).toBe(1)
    isAway = true
    expect(await registry.metrics()).not.toMatch(/^(first|second) /m)
    isAway = false
    expect(await registry.metrics()).toMatch(/^first 1$/m)
  })
})

describe('the metrics port', () => {
  it('the metrics port is not opened if METRICS_PORT is 0', async () => {
    expect(await serveMetrics({ ...scraped, METRICS_PORT: 0 }, [])).toBeUndefined()
  })

  it('the metrics port serves the metrics of several registries; a port that is in use is rejected', async () => {
    const one = createMetricSet({ service_one_total: 'One.' })
    const two = createMetricSet({ service_two_total: 'Two.' })
    one.counter('service_one_total').inc(3)
    two.counter('service_two_total').inc(4)
    const METRICS_PORT = await freePort()
    const server = await serveMetrics({ ...scraped, METRICS_PORT }, [one.registry, two.registry])
    const answer = await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)
    expect(answer.headers.get('content-type')).toContain('text/plain')
    expect(await answer.text()).toMatch(/^service_one_total 3$[\s\S]*^service_two_total 4$/m)
    await expect(serveMetrics({ ...scraped, METRICS_PORT }, [])).rejects.toThrow('METRICS_PORT: the port')
    await server?.close()
    await expect(fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).rejects.toThrow()
  })
})
