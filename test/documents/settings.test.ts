import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { knownNames, settingsDocument } from '../../dev/make/settings.ts'

it('docs/settings.md is up to date', async () => {
  expect(await readFile(join(import.meta.dirname, '../../docs/settings.md'), 'utf8')).toBe(settingsDocument())
})

it('each setting has a description', () => {
  expect(
    settingsDocument()
      .split('\n')
      .filter((line) => line.endsWith('|  |')),
  ).toEqual([])
})

it('the list of known settings is up to date', async () => {
  const file = join(import.meta.dirname, '../../platform/settings/known-names.json')
  expect(await readFile(file, 'utf8')).toBe(knownNames())
})
