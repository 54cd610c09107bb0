import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { settingsDocument } from '../../dev/write-settings.ts'

it('docs/settings.md is up to date', async () => {
  expect(await readFile(join(import.meta.dirname, '../../docs/settings.md'), 'utf8')).toBe(settingsDocument())
})
