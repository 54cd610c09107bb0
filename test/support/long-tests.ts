import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folders that contain tests, as a glob pattern. */
export const testedFolders =
  '{core,core-client,contract,gateway,delivery,platform,browser,widget,webhooks,console,test,dev,admin,serve}'

/**
 * Returns the files that a long run tests: files named `*.long.test.ts`, and files whose tests do
 * more if `isLong` is set, themselves or in `untilOneSurvives`. The latter run in `npm test`, too.
 */
export function longTests(root: string): string[] {
  const files = globSync(`${testedFolders}/**/*.test.ts`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] })
  const usesMode = (file: string) =>
    /\/support\/is-long\.ts'|untilOneSurvives\(/.test(readFileSync(join(root, file), 'utf8'))
  return files.filter((file) => file.endsWith('.long.test.ts') || usesMode(file)).sort()
}
