import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { wireTypes } from '../../dev/make/events.ts'

it('the widget knows every field of the public schemas: its types are those that `npm run make -- events` writes', () => {
  const path = join(import.meta.dirname, '../../widget/src/vocabulary/gen/wire.ts')
  expect(readFileSync(path, 'utf8')).toBe(wireTypes())
})
