import { luminance } from './launcher-colors.ts'

/** Surface and text colours of the panel. `panel.css` repeats these values. */
const schemes = { light: { surface: '#ffffff', text: '#16181d' }, dark: { surface: '#17191f', text: '#eef0f4' } }

/** Returns the contrast ratio (WCAG 2.2) of two colours `#rrggbb`, from 1 to 21. */
export function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

/**
 * Returns the colour of focus rings: the accent colour if its contrast is at least 3, else the text
 * colour.
 */
export function focusColor(accent: string, scheme: 'light' | 'dark'): string {
  const { surface, text } = schemes[scheme]
  return contrast(accent, surface) >= 3 ? accent : text
}
