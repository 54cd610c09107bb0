// Checks a running deployment. Example:
// `npm run conformance -- --target .data/demo.json --rules C1.1,C4`
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { setTargetFile } from './config.ts'
import { rules } from './rules.ts'
import { readTarget } from './target.ts'

const { values } = parseArgs({
  options: { target: { type: 'string', default: '.data/demo.json' }, rules: { type: 'string' } },
})
/** Matches the whole id, or a whole part before a dot: `C1` selects `C1.1`, but not `C10.1`. */
const isSelected = (id: string) =>
  values.rules === undefined || values.rules.split(',').some((each) => id === each || id.startsWith(`${each}.`))
const selected = rules.filter(({ id }) => isSelected(id)).map(({ id }) => id)
if (selected.length === 0) {
  console.error(`--rules selects no rule. There are: ${rules.map(({ id }) => id).join(' ')}`)
  process.exit(2)
}
const target = resolve(values.target)
await readTarget(target).catch((error: Error) => {
  console.error(error.message)
  process.exit(2)
})

setTargetFile(target)
const names =
  values.rules === undefined ? [] : ['-t', `(^| )(${selected.map((id) => id.replace('.', '\\.')).join('|')}) `]
const vitest = resolve(import.meta.dirname, '../../node_modules/vitest/vitest.mjs')
const child = spawn(process.execPath, [vitest, 'run', '--config', 'test/conformance/vitest.config.ts', ...names], {
  cwd: resolve(import.meta.dirname, '../..'),
  stdio: 'inherit',
})
child.on('exit', (code) => {
  process.exitCode = code ?? 1
})
