// npm run fuzz -- --seed 7 --minutes 10
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '5' },
  },
})
const [seed, minutes] = [Number(values.seed), Number(values.minutes)]
if (!Number.isSafeInteger(seed) || !(minutes > 0)) {
  console.error('usage: npm run fuzz -- [--seed <whole number>] [--minutes <minutes>]')
  process.exit(1)
}
process.env.FUZZ_SEED = String(seed)
process.env.FUZZ_MINUTES = String(minutes)
const vitest = await startVitest('test', [], { config: join(import.meta.dirname, 'vitest.config.ts'), watch: false })
await vitest.close()
