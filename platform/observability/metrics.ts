import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Seconds, from what a cache answers to what a deadline ends. */
export const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Numbers of things that go together. */
export const sizeBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** What a metric is, as the document of all metrics shows it. */
export interface MetricDeclaration {
  name: string
  help: string
  type: string
  labelNames: string[]
}

/** Declares the metrics of one part, in a registry of their own. */
export function createMetricSet() {
  const registry = new Registry()
  const registers = [registry]
  return {
    registry,
    counter: <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
      new Counter<L>({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    histogram: <L extends string = never>(name: string, help: string, buckets: number[], labelNames: L[] = []) =>
      new Histogram<L>({ name, help, labelNames, buckets, registers }),
  }
}

/**
 * Lets gauges ask for their values when they are scraped: one question for all of them. Without an answer they are left out
 * of that scrape.
 */
export function readAtScrape(gauges: Gauge[], read: () => number[] | Promise<number[]>): void {
  let answer: Promise<void> | undefined

  async function ask() {
    const values = await Promise.resolve()
      .then(read)
      .catch(() => [])
    for (const [index, gauge] of gauges.entries()) {
      const value = values[index]
      if (value === undefined) gauge.remove()
      else gauge.set(value)
    }
    answer = undefined
  }

  const collect = () => (answer ??= ask())
  for (const gauge of gauges) Object.assign(gauge, { collect })
}

/** Every metric of a registry, in the order of its declaration. */
export const declarationsOf = (registry: Registry): MetricDeclaration[] =>
  registry.getMetricsAsArray().map((metric) => {
    const { name, help, type, labelNames } = metric as unknown as MetricDeclaration
    return { name, help, type: String(type), labelNames }
  })
