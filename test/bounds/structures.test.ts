import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { structures } from './structures.ts'

const root = join(import.meta.dirname, '../..')
/** An empty map, set, list or a cache in the outer function of a file, in a class, or that is itself the part of a core. */
const declaration =
  /^(?: {2}(?:const|let|readonly) #?|(?:export )?const )(\w+)(?:: .+)? = (?:perCore\(\(\) => )?(?:new (?:Map|Set)(?:<.*>)?\(\)|createLruCache\b.*|\[\])\)?$/gm

it('each structure that a part keeps is in the table with its bound, and each of the table exists', () => {
  const found: Record<string, string[]> = {}
  for (const path of globSync('{gateway,core,core-client,platform}/**/*.ts', { cwd: root })) {
    if (/(\.test\.ts$|\/test\/)/.test(path)) continue
    const names = [...readFileSync(join(root, path), 'utf8').matchAll(declaration)].map(([, name = '']) => name)
    if (names.length > 0) found[path] = [...new Set(names)].sort()
  }
  const listed = Object.fromEntries(Object.entries(structures).map(([path, each]) => [path, Object.keys(each).sort()]))
  expect(found).toEqual(listed)
})
