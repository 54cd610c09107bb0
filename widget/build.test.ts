import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { buildWidget, buildWidgetIfStale, widgetDist } from './build.ts'

const source = fileURLToPath(new URL('src/', import.meta.url))
const budgets: Record<string, number> = { 'service-widget.js': 36 * 1024, 'widget.js': 32 * 1024 }

describe('the built widget', () => {
  it('stays inside its budget, and is not built again while nothing changed', async () => {
    const files = await buildWidget()
    expect(files.map(({ name }) => name)).toEqual(Object.keys(budgets))
    for (const { name, gzipBytes } of files) expect(gzipBytes, name).toBeLessThan(budgets[name]!)
    expect(await buildWidgetIfStale()).toEqual([])
  })

  it('needs nothing that a strict page forbids, and keeps nothing beyond the tab', async () => {
    await buildWidgetIfStale()
    for (const name of Object.keys(budgets)) {
      const code = await readFile(join(widgetDist, name), 'utf8')
      expect(code).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/)
      expect(code).not.toMatch(/localStorage|document\.cookie|indexedDB/)
      expect(code.match(/\bimport\s*[({'"]/g)).toBeNull()
    }
  })
})

it('touches the page only in its user interface', async () => {
  const files = (await readdir(source, { recursive: true })).filter(
    (name) => /(?<!\.test)\.ts$/.test(name) && !name.startsWith('ui/'),
  )
  expect(files.length).toBeGreaterThan(10)
  for (const name of files) {
    const code = (await readFile(join(source, name), 'utf8')).replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    expect(code, name).not.toMatch(/\b(document|window|navigator|location)\b\s*[.?[]/)
  }
})
