import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAll } from '../test/support/for-all.ts'
import { runs } from '../test/support/is-long.ts'
import { contrast, focusColor, launcherColors } from './colors.ts'

const channel = fc.integer({ min: 0, max: 255 })

it('launcherColors returns a text colour with a contrast of at least 4.5 for every accent colour', () => {
  forAll([channel, channel, channel], runs(2_000, 10), (r, g, b) => {
    const hex = `#${[r, g, b].map((part) => part.toString(16).padStart(2, '0')).join('')}`
    const { accent, onAccent } = launcherColors(hex)
    expect(accent).toBe(hex)
    expect(contrast(hex, onAccent === '#fff' ? '#ffffff' : '#000000')).toBeGreaterThanOrEqual(4.5)
  })
})

it('focusColor returns another colour if the accent colour has too little contrast to the surface', () => {
  expect(focusColor('#1f5f4f', 'light')).toBe('#1f5f4f')
  expect(focusColor('#f5c518', 'light')).not.toBe('#f5c518')
  expect(focusColor('#101010', 'dark')).not.toBe('#101010')
})

it.each(['red', '#12', '#abc', 'url(https://evil.example)', '#ffffff; } :host { display: none', undefined])(
  'launcherColors returns the default colours if the accent colour is not # and six hex digits: %s',
  (text) => expect(launcherColors(text)).toEqual(launcherColors('#2554d6')),
)
