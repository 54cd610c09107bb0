import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const cssOf = (pattern: string) =>
  globSync(pattern, { cwd: root })
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('')
const styles = { widget: cssOf('widget/src/ui/**/*.css'), console: cssOf('console/src/styles/pages.css') }

/** Returns the value that the first rule with this selector sets for a property. */
function declared(css: string, selector: string, property: string) {
  const rules = css.split('}').map((rule) => rule.split('{'))
  const own = rules.filter(([selectors = '']) => selectors.trim().split(/,\s*/).includes(selector))
  return own.flatMap(([, body = '']) => body.match(new RegExp(`(?<=\\s${property}: )[^;]+`)) ?? [])[0]
}

it.each([
  ['.preview-panel', '.panel', 'border-radius'],
  ['.preview-head', '.header', 'padding'],
  ['.preview-head', '.title', 'font-size'],
  ['.preview-head', '.title', 'font-weight'],
  ['.avatar.preview-mark', '.mark', 'width'],
  ['.preview-panel > :not(.preview-head)', '.bubble', 'padding'],
  ['.preview-panel > :not(.preview-head)', '.column', 'max-width'],
  ['.preview-launcher', '.launcher', 'width'],
])('%s of the preview of a website has the %s of the widget: %s', (preview, original, property) => {
  const value = declared(styles.widget, original, property)
  expect(value).toBeDefined()
  expect(declared(styles.console, preview, property)).toBe(value)
})

it('the preview of a website has the colours of the widget', () => {
  const colours = ['--surface', '--text', '--raised'].map((name) => declared(styles.widget, '.frame', name))
  expect([
    declared(styles.console, '.preview-panel', 'background'),
    declared(styles.console, '.preview', 'color'),
    declared(styles.console, '.preview-panel p', 'background'),
  ]).toEqual(colours)
})
