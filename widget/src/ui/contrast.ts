import { luminance } from './launcher-colors.ts'

/** The panel's surface and text in each colour scheme, as in the style sheet. */
const schemes = { light: { surface: '#ffffff', text: '#16181d' }, dark: { surface: '#17191f', text: '#eef0f4' } }

/** Contrast ratio of two colours `#rrggbb` as WCAG 2.2 counts it, from 1 to 21. */
export function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

/** Colour of focus rings: the accent colour if its contrast is sufficient, else the text colour. */
export function focusColor(accent: string, scheme: 'light' | 'dark'): string {
  const { surface, text } = schemes[scheme]
  return contrast(accent, surface) >= 3 ? accent : text
}
