import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readCoreConfig } from '../../core/config.ts'
import { bareCore } from '../../core/test/core-with.ts'
import { collectionsWithRule } from '../../core/test/retention-rules.ts'
import { retentionOf } from '../../core/workspaces/workspaces.ts'

const document = readFileSync(join(import.meta.dirname, '../../docs/retention.md'), 'utf8')
const [, rows = ''] = document.split('## Each collection')

it('docs/retention.md lists each collection that has a retention rule exactly once', () => {
  const named = rows
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([\w.]+)`/g)].map(([, name]) => name))
  expect(named.toSorted()).toEqual(collectionsWithRule.toSorted())
})

it('docs/retention.md states the default of each period', () => {
  const cells = [...document.matchAll(/^\| ([a-z ]+) \| (no limit|\d+ days?) \|/gm)].map(([, name, days]) => [
    name,
    days,
  ])
  const nameOf = (kind: string) => kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  const textOf = (days: number) => (days === 0 ? 'no limit' : days === 1 ? '1 day' : `${days} days`)
  const defaults = Object.entries(retentionOf(bareCore({ config: readCoreConfig({}) }), {}))
  expect(cells).toEqual(defaults.map(([kind, days]) => [nameOf(kind), textOf(days)]))
})
