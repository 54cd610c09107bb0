import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram, Registry } from 'prom-client'

export const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
export const sizeBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** A metric as docs/metrics.md lists it. */
export interface MetricDeclaration {
  name: string
  help: string
  type: string
  labelNames: string[]
}

/** Creates a registry for the metrics of one process. `texts` says what each metric counts. */
export function createMetricSet<Name extends string>(texts: Record<Name, string>) {
  const registry = new Registry()
  const about = <L>(name: Name, labelNames: L[]) => ({ name, help: texts[name], labelNames, registers: [registry] })
  return {
    registry,
    counter: <L extends string = never>(name: Name, labelNames: L[] = []) => new Counter<L>(about(name, labelNames)),
    gauge: <L extends string = never>(name: Name, labelNames: L[] = []) => new Gauge<L>(about(name, labelNames)),
    histogram: <L extends string = never>(name: Name, buckets: number[], labelNames: L[] = []) =>
      new Histogram<L>({ ...about(name, labelNames), buckets }),
  }
}

/** Calls `collect` at each scrape, before the metric is read. */
export const atScrape = (metric: Gauge<string> | Counter<string>, collect: () => unknown) =>
  Object.assign(metric, { collect })

/** Sets the gauges at each scrape with one call of `read`. If it fails, they are missing from that scrape. */
export function readAtScrape(gauges: Gauge[], read: () => number[] | Promise<number[]>) {
  let pending: Promise<void> | undefined

  async function update() {
    const values = await Promise.resolve()
      .then(read)
      .catch(() => [])
    for (const [index, gauge] of gauges.entries()) {
      const value = values[index]
      if (value === undefined) gauge.remove()
      else gauge.set(value)
    }
    pending = undefined
  }

  const collect = () => (pending ??= update())
  for (const gauge of gauges) atScrape(gauge, collect)
}

/**
 * Measures when the gauge is scraped, at most once in `everyMs`. A scrape does not wait for the measurement: it gets
 * the values of the one before. If a measurement fails, the values stay.
 */
export function measureAtScrape(gauge: Gauge<string>, everyMs: number, measure: () => Promise<void>) {
  let last = Number.NEGATIVE_INFINITY
  atScrape(gauge, () => {
    if (performance.now() - last < everyMs) return
    last = performance.now()
    measure().catch(() => {})
  })
}

/** Returns the metrics of a registry in the order in which they were declared. */
export const declarationsOf = (registry: Registry): MetricDeclaration[] =>
  registry.getMetricsAsArray().map((metric) => {
    const { name, help, type, labelNames } = metric as unknown as MetricDeclaration
    return { name, help, type: String(type), labelNames }
  })
