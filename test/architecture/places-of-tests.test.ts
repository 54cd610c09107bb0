import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { journeys } from '../support/journeys.ts'
import { longTests, testedFolders } from '../support/long-tests.ts'
import { testsOfRoom } from '../support/rooms.ts'
import { inProject } from './rules.ts'
import { sourceFacts } from './source-facts.ts'

const root = join(import.meta.dirname, '../..')
const files = globSync(`${testedFolders}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] })
const isTest = (path: string) => path.endsWith('.test.ts')
const importsOf = new Map(
  files.map((path) => [path, sourceFacts(path, readFileSync(join(root, path), 'utf8')).imports]),
)

/** Modules that start processes or browsers. */
const starters = /^(node:child_process|playwright-core)$/

/** Returns the imports by which a file starts processes or a browser; undefined if it starts none. */
function chainToStarter(path: string, seen = new Set<string>()): string[] | undefined {
  if (seen.has(path)) return undefined
  seen.add(path)
  for (const imported of importsOf.get(path) ?? []) {
    if (starters.test(imported)) return [path, imported]
    const next = inProject(path, imported)
    const chain = next && chainToStarter(next, seen)
    if (chain) return [path, ...chain]
  }
  return undefined
}

describe('the place of a test', () => {
  it('is a folder `test/` if the test starts processes or a browser', () => {
    const elsewhere = files.filter((path) => isTest(path) && !/(^|\/)test\//.test(path))
    expect(elsewhere.flatMap((path) => chainToStarter(path)?.join(' > ') ?? [])).toEqual([])
  })

  it('is found through the files that a test imports', () => {
    expect(chainToStarter('test/chaos/chaos.long.test.ts')?.at(-1)).toBe('node:child_process')
    expect(chainToStarter('core/log/event-log.test.ts')).toBeUndefined()
  })

  it('is the file of the test itself: no file only imports other tests', () => {
    const wrappers = files.filter((path) => isTest(path) && importsOf.get(path)!.some((each) => isTest(each)))
    expect(wrappers).toEqual([])
  })
})

describe('the place of a helper of tests', () => {
  it('is a folder `test/`', () => {
    const helps = (path: string) =>
      !isTest(path) && importsOf.get(path)!.some((each) => each === 'vitest' || each.includes('test/support/'))
    expect(files.filter((path) => helps(path) && !/(^|\/)test\/|^(bench|dev)\//.test(path))).toEqual([])
  })
})

describe('the map of rooms', () => {
  it('names folders and tests that exist', () => {
    const tests = files.filter(isTest)
    for (const [room, prefixes] of Object.entries(testsOfRoom)) {
      expect(
        files.some((path) => path.startsWith(`${room}/`) && !isTest(path)),
        room,
      ).toBe(true)
      for (const prefix of prefixes)
        expect(
          tests.some((test) => test.startsWith(prefix)),
          prefix,
        ).toBe(true)
    }
  })

  it('names tests for each folder of the product that has none', () => {
    const product = /^(core|gateway|delivery|widget\/src|console\/src|browser|platform|contract|core-client|webhooks)\//
    const folders = new Set(files.filter((path) => product.test(path) && !/\/test\//.test(path)).map(dirname))
    const isCovered = (folder: string) =>
      files.some((path) => isTest(path) && dirname(path) === folder) ||
      Object.keys(testsOfRoom).some((room) => `${folder}/`.startsWith(`${room}/`))
    expect([...folders].filter((folder) => !isCovered(folder))).toEqual([])
  })
})

describe('the list of journeys', () => {
  it('has at most 40 files, which exist', () => {
    expect(journeys.length).toBeLessThanOrEqual(40)
    expect(journeys.filter((file) => !files.includes(file))).toEqual([])
  })
})

describe('the long tests', () => {
  it('are files that only a long run has, and files of which a long run does more', () => {
    expect(longTests(root)).toEqual(
      expect.arrayContaining(['test/chaos/chaos.long.test.ts', 'core/privacy/erasures.test.ts']),
    )
    expect(longTests(root)).not.toContain('core/log/log-follower.test.ts')
  })
})
