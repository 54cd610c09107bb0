import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Number of days within which `npm run test:daily` runs every long test. */
export const shareCount = 14

/** Folders that contain tests, as a glob pattern. */
export const testedFolders =
  '{core,core-client,contract,gateway,delivery,platform,browser,widget,webhooks,console,test,dev,admin}'

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

/**
 * Returns the number of the share of a day. The day before and the day after have other shares, and
 * each share returns after `shareCount` days.
 */
export const shareOf = (date: Date): number => (Math.floor(date.getTime() / 86_400_000) % shareCount) + 1

/**
 * Returns the files of a share. Neighbours in the list often take as long as each other, so they are
 * in different shares.
 */
export const filesOfShare = (files: string[], share: number): string[] =>
  files.filter((_, index) => index % shareCount === share - 1)
