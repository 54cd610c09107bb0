#!/usr/bin/env node
// Checks a running deployment, in this repository and as the command of `@service/conformance`. Examples:
// `npm run conformance -- --target .data/demo.json --rules C1.1,C4`
// `npx @service/conformance https://chat.example --site-key pk_… --origin https://shop.example --html`
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { startVitest, type TestCase } from 'vitest/node'
import manifest from '../../package.json' with { type: 'json' }
import { htmlOf, type Report, textOf } from './report.ts'
import { rules } from './rules.ts'
import { readTarget, type Target } from './target.ts'

const usage = `usage: conformance <url> --site-key <key> --origin <origin> [--rules C1.1,C4] [--json | --html]
       conformance --target <file with addresses and credentials> [--rules C1.1,C4] [--json | --html]`

function exit(reason: string): never {
  console.error(reason)
  process.exit(2)
}

function parseOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        target: { type: 'string', default: '.data/demo.json' },
        'site-key': { type: 'string' },
        origin: { type: 'string' },
        rules: { type: 'string' },
        json: { type: 'boolean' },
        html: { type: 'boolean' },
      },
    })
    return { ...values, urls: positionals }
  } catch (error) {
    return exit(`${(error as Error).message}\n${usage}`)
  }
}

const options = parseOptions()
/** Matches the whole id, or a whole part before a dot: `C1` selects `C1.1`, but not `C10.1`. */
const isSelected = (id: string) =>
  options.rules === undefined || options.rules.split(',').some((each) => id === each || id.startsWith(`${each}.`))
const selected = rules.filter(({ id }) => isSelected(id)).map(({ id }) => id)
if (selected.length === 0) exit(`--rules selects no rule. There are: ${rules.map(({ id }) => id).join(' ')}`)

async function targetOf({ urls: [gatewayUrl], target, origin, 'site-key': siteKey }: typeof options): Promise<Target> {
  if (gatewayUrl === undefined) return readTarget(target)
  if (!URL.canParse(gatewayUrl) || !siteKey || !origin) throw new Error(usage)
  return { gatewayUrl, siteKey, origin }
}

const target = await targetOf(options).catch((error: Error) => exit(error.message))
const startedAt = new Date()
let ended = 0
const vitest = await startVitest([], {
  config: false,
  root: import.meta.dirname,
  include: ['deployment.run.{ts,js}'],
  exclude: [],
  cache: false,
  watch: false,
  // Vitest sends it to the worker in a message. So credentials appear neither in a list of processes
  // nor in an environment.
  provide: { target },
  reporters: [
    {
      onTestCaseResult() {
        ended += 1
        if (process.stderr.isTTY) process.stderr.write(`\r${ended} tests have ended`)
      },
      onTestRunEnd() {
        if (process.stderr.isTTY) process.stderr.write('\r')
      },
    },
  ],
  ...(options.rules !== undefined && {
    testNamePattern: `(^| )(${selected.map((id) => id.replace('.', '\\.')).join('|')}) `,
  }),
  // A test waits while a rate limit refuses its sessions.
  testTimeout: 300_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 10_000 } },
})

const modules = vitest.state.getTestModules()
const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
const problems = [...suites.flatMap((suite) => suite.errors()), ...vitest.state.getUnhandledErrors()]
const report: Report = {
  service: target.gatewayUrl,
  siteKey: target.siteKey,
  origin: target.origin,
  checkedBy: `@service/conformance ${manifest.version}`,
  startedAt: startedAt.toISOString(),
  problems: problems.map(messageOf),
  tests: modules.flatMap((module) => [...module.children.allTests()]).flatMap(testOf),
}
await vitest.close()
console.log(options.json ? JSON.stringify(report, undefined, 2) : (options.html ? htmlOf : textOf)(report))
const hasFailed = report.tests.some(({ state }) => state === 'failed')
process.exitCode = hasFailed || problems.length > 0 ? 1 : 0

/** Returns no result if `--rules` does not select the test. */
function testOf(test: TestCase): Report['tests'] {
  const result = test.result()
  const [id] = test.name.split(' ')
  const { section } = rules.find((rule) => rule.id === id)!
  const row = { rule: id!, section, sentence: test.name.slice(id!.length + 1) }
  if (result.state === 'passed') return [{ ...row, state: 'passed' }]
  if (result.state === 'failed') return [{ ...row, state: 'failed', reason: result.errors.map(messageOf).join('\n') }]
  return isSelected(id!) ? [{ ...row, state: 'not run', reason: (result as { note?: string }).note ?? '' }] : []
}

/** Removes words that may be credentials, because a report is given to others. */
function messageOf(error: unknown): string {
  const { message, diff } = error as { message: string; diff?: string }
  const text = stripVTControlCharacters([message, diff].filter(Boolean).join('\n'))
  return text.replaceAll(/[\w-]{40,}/g, '…')
}
