import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { journeys } from '../support/journeys.ts'
import { longTests, testedFolders } from '../support/long-tests.ts'
import { testsOfRoom } from '../support/rooms.ts'

const root = join(import.meta.dirname, '../..')
const files = globSync(`${testedFolders}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] })
const isTest = (path: string) => path.endsWith('.test.ts')

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

it('the list of journeys has at most 40 files, which exist', () => {
  expect(journeys.length).toBeLessThanOrEqual(40)
  expect(journeys.filter((file) => !files.includes(file))).toEqual([])
})

it('the long tests are files that only a long run has, and files of which a long run does more', () => {
  expect(longTests(root)).toEqual(
    expect.arrayContaining(['test/chaos/chaos.long.test.ts', 'core/privacy/erasures.test.ts']),
  )
  expect(longTests(root)).not.toContain('core/log/log-follower.test.ts')
})
