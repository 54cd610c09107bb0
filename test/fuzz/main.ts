// Runs the fuzz test with a given seed and duration: `npm run verify -- fuzz --seed 7 --minutes 10`
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '5' },
  },
})
const vitest = await startVitest('test', ['test/fuzz'], {
  mode: 'run',
  watch: false,
  env: { FUZZ_SEED: values.seed, FUZZ_MINUTES: values.minutes },
})
await vitest.close()
