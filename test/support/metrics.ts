/** One sample, which is one line of the Prometheus text format. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Scrapes the metrics of a process. */
export async function scrape(url: string): Promise<Sample[]> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  return (await answer.text()).split('\n').flatMap((line) => {
    const [, name = '', labels = '', value = ''] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === '') return []
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text])
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
  })
}

/** Returns the sum of a metric's samples that have these labels. */
export const sumOf = (samples: Sample[], name: string, labels: Record<string, string> = {}): number =>
  samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([label, text]) => sample.labels[label] === text))
    .reduce((sum, { value }) => sum + value, 0)
