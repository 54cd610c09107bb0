/** Returns the accent colour, or the default if it is invalid, and a text colour with enough contrast. */
export function launcherColors(accentColor = ''): { accent: string; onAccent: string } {
  const accent = /^#[\da-f]{6}$/i.test(accentColor) ? accentColor : '#2554d6'
  // White text has a contrast of at least 4.5 to 1 on colours up to this luminance. Black text has
  // it on all lighter colours.
  return { accent, onAccent: luminance(accent) <= 0.1833 ? '#fff' : '#000' }
}

/** Returns the relative luminance (WCAG 2.2) of a colour `#rrggbb`, from 0 to 1. */
function luminance(hex: string) {
  // WCAG uses another formula for very dark shares. The results differ by less than 0.001.
  const share = (index: number) => ((Number(`0x${hex.substr(index, 2)}`) / 255 + 0.055) / 1.055) ** 2.4
  return 0.2126 * share(1) + 0.7152 * share(3) + 0.0722 * share(5)
}

/** Surface and text colours of the panel. `panel.css` repeats these values. */
const schemes = { light: { surface: '#ffffff', text: '#16181d' }, dark: { surface: '#17191f', text: '#eef0f4' } }

/** Returns the contrast ratio (WCAG 2.2) of two colours `#rrggbb`, from 1 to 21. */
export function contrast(a: string, b: string) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

/** Returns the colour of focus rings: the accent colour if its contrast is at least 3, else the text's. */
export function focusColor(accent: string, scheme: 'light' | 'dark') {
  const { surface, text } = schemes[scheme]
  return contrast(accent, surface) >= 3 ? accent : text
}

/** Returns true if an accent colour hardly differs from the background of the chat. */
export function isFaint(accent: string, scheme: 'light' | 'dark') {
  return contrast(accent, schemes[scheme].surface) < 1.5
}
