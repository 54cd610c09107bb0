import { Stryker } from '@stryker-mutator/core'
import { setTests } from './config.ts'
import { modules } from './modules.ts'

/** `npm run verify -- mutation [module…]`: mutates the code and reports mutants that no test detects. */
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in modules))
if (unknown.length > 0) {
  console.error(`No such module: ${unknown.join(', ')}. There are: ${Object.keys(modules).join(', ')}`)
  process.exit(1)
}

const scores: string[] = []
for (const name of wanted.length > 0 ? wanted : Object.keys(modules)) {
  const { mutate, tests } = modules[name]!
  setTests(tests)
  const results = await new Stryker({
    mutate,
    plugins: ['@stryker-mutator/vitest-runner', './test/mutation/vitest5-runner.js'],
    testRunner: 'vitest5',
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    concurrency: 1,
    timeoutMS: 20_000,
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    tempDirName: '.cache/stryker',
    // No tsconfig is given. Stryker cannot read one with TypeScript 7 and does not need it.
    tsconfigFile: 'none',
  }).runMutationTest()
  const killed = results.filter(({ status }) => status === 'Killed' || status === 'Timeout').length
  const counted = killed + results.filter(({ status }) => status === 'Survived' || status === 'NoCoverage').length
  scores.push(`${name.padEnd(16)} ${killed} of ${counted} killed (${((100 * killed) / counted).toFixed(1)} %)`)
}
console.info(`\n${scores.join('\n')}`)
