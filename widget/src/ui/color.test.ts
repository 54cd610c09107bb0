import fc from 'fast-check'
import { expect, it } from 'vitest'
import { accentColors, contrast, parseHex } from './color.ts'

const channel = fc.integer({ min: 0, max: 255 })

it('puts readable text on every accent colour', () => {
  fc.assert(
    fc.property(channel, channel, channel, (r, g, b) => {
      const hex = `#${[r, g, b].map((part) => part.toString(16).padStart(2, '0')).join('')}`
      const on = accentColors(hex).onAccent === 'rgb(255 255 255)' ? ([255, 255, 255] as const) : ([0, 0, 0] as const)
      expect(contrast([r, g, b], on)).toBeGreaterThanOrEqual(4.5)
    }),
    { numRuns: 2_000 },
  )
})

it('draws focus rings that stand out from the surface', () => {
  expect(accentColors('#1f5f4f').focusOnLight).toBe('rgb(31 95 79)')
  expect(accentColors('#f5c518').focusOnLight).not.toBe('rgb(245 197 24)')
  expect(accentColors('#101010').focusOnDark).not.toBe('rgb(16 16 16)')
})

it.each(['red', '#12', 'url(https://evil.example)', '#fff; } :host { display: none', undefined])(
  'takes no colour but a hex one: %s',
  (text) => {
    expect(accentColors(text)).toEqual(accentColors('#2554d6'))
    expect(parseHex(text ?? '')).toBeUndefined()
  },
)
