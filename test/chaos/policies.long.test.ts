import { expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { changePolicy, policyNames } from './policies.ts'
import { runWith } from './run.ts'
import { isReady } from './service.ts'

/**
 * The contract allows one second. The test allows more, because the requests take time on a busy
 * machine. The printed lines show the measured times.
 */
const withinMs = 5_000

it('a policy change during traffic takes effect on every gateway and stream, even if the core is killed before it sends the wake-up', async () => {
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const options = { seed: 1, arrivalSeconds: 5, visitors: 4, say }
  const report = await runWith(options, async (service, _random, recorder) => {
    for (const name of policyNames) {
      say(await changePolicy(service, recorder, { name, how: 'made', withinMs }))
      say(await changePolicy(service, recorder, { name, how: 'lost', withinMs }))
    }
    // The gateways need time to continue on the other core. So the test checks only that they apply
    // the change, and not how fast.
    const [first] = service.cores
    for (const name of policyNames) {
      say(await changePolicy(service, recorder, { name, how: 'killed', withinMs: 15_000 }))
      await first!.kill()
      await first!.start()
      await until('the core to be ready', () => isReady(first!.url))
    }
  })
  expect(report.violations, lines.join('\n')).toEqual([])
  expect(
    lines.filter((line) => / seen after /.test(line)),
    lines.join('\n'),
  ).toHaveLength(3 * policyNames.length)
})
