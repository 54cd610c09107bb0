// `npm run t -- <path> …` runs the tests that are nearest to files or folders: the tests of their
// folder, the tests that import them, and those that `rooms.ts` names. Without a path, it takes the
// files that are changed and not committed.
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { inProject } from './architecture/rules.ts'
import { sourceFacts } from './architecture/source-facts.ts'
import { testedFolders } from './support/long-tests.ts'
import { testsOfRoom } from './support/rooms.ts'

const root = join(import.meta.dirname, '..')
const tests = globSync(`${testedFolders}/**/!(*.long).test.ts`, { cwd: root, exclude: ['**/node_modules/**'] })

function changedFiles(): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n')
  return [...git('diff', '--name-only', 'HEAD'), ...git('ls-files', '--others', '--exclude-standard')].filter(Boolean)
}

/** Returns the tests that are nearest to a file or folder. */
function testsOf(path: string): string[] {
  if (path.endsWith('.test.ts')) return [path]
  const folder = /\.\w+$/.test(path) ? dirname(path) : path
  const named = Object.entries(testsOfRoom).flatMap(([room, prefixes]) =>
    folder === room || folder.startsWith(`${room}/`) ? prefixes : [],
  )
  return tests.filter(
    (test) =>
      dirname(test) === folder || named.some((prefix) => test.startsWith(prefix)) || importsOf(test).includes(path),
  )
}

function importsOf(test: string): (string | undefined)[] {
  return sourceFacts(test, readFileSync(join(root, test), 'utf8')).imports.map((each) => inProject(test, each))
}

const { positionals } = parseArgs({ allowPositionals: true })
const paths = positionals.map((path) => relative(root, resolve(path)))
const chosen = [...new Set((paths.length > 0 ? paths : changedFiles()).flatMap(testsOf))]
if (chosen.length === 0) {
  console.error('no test is near these files; name a test, or add it to test/support/rooms.ts')
  process.exit(1)
}
console.log(chosen.join('\n'))
const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...chosen], {
  cwd: root,
  stdio: 'inherit',
})
process.exit(status ?? 1)
