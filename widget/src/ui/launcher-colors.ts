/**
 * Returns the accent colour and a text colour with enough contrast, black or white. Uses the
 * default accent colour if the given one is invalid.
 */
export function launcherColors(accentColor = ''): { accent: string; onAccent: string } {
  const accent = /^#[\da-f]{6}$/i.test(accentColor) ? accentColor : '#2554d6'
  // White text has a contrast of at least 4.5 to 1 on colours up to this luminance. Black text has
  // it on all lighter colours.
  return { accent, onAccent: luminance(accent) <= 0.1833 ? '#fff' : '#000' }
}

/** Returns the relative luminance (WCAG 2.2) of a colour `#rrggbb`, from 0 to 1. */
export function luminance(hex: string): number {
  return [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
    const share = Number.parseInt(hex.substr(1 + 2 * index, 2), 16) / 255
    return sum + weight * (share > 0.04045 ? ((share + 0.055) / 1.055) ** 2.4 : share / 12.92)
  }, 0)
}
