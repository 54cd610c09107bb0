import fc from 'fast-check'
import { expect, it } from 'vitest'
import { contrast, focusColor } from './contrast.ts'
import { launcherColors } from './launcher-colors.ts'

const channel = fc.integer({ min: 0, max: 255 })

it('puts readable text on every accent colour', () => {
  fc.assert(
    fc.property(channel, channel, channel, (r, g, b) => {
      const hex = `#${[r, g, b].map((part) => part.toString(16).padStart(2, '0')).join('')}`
      const { accent, onAccent } = launcherColors(hex)
      expect(accent).toBe(hex)
      expect(contrast(hex, onAccent === '#fff' ? '#ffffff' : '#000000')).toBeGreaterThanOrEqual(4.5)
    }),
    { numRuns: 2_000 },
  )
})

it('draws focus rings that stand out from the surface', () => {
  expect(focusColor('#1f5f4f', 'light')).toBe('#1f5f4f')
  expect(focusColor('#f5c518', 'light')).not.toBe('#f5c518')
  expect(focusColor('#101010', 'dark')).not.toBe('#101010')
})

it.each(['red', '#12', '#abc', 'url(https://evil.example)', '#ffffff; } :host { display: none', undefined])(
  'takes no colour but a hex one: %s',
  (text) => expect(launcherColors(text)).toEqual(launcherColors('#2554d6')),
)
