import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { modules } from './modules.ts'

it.each(Object.entries(modules))('the files and tests of the mutated module %s exist', (_, { mutate, tests }) => {
  const missing = [...mutate, ...tests].filter(
    (path) => globSync(path, { cwd: join(import.meta.dirname, '../..') }).length === 0,
  )
  expect(missing).toEqual([])
})
