/** The installation's accent colour or the default, and black or white text by contrast. */
export function launcherColors(accentColor = ''): { accent: string; onAccent: string } {
  const accent = /^#[\da-f]{6}$/i.test(accentColor) ? accentColor : '#2554d6'
  // At this luminance white has a contrast of 4.5 to 1; black has more on everything lighter.
  return { accent, onAccent: luminance(accent) <= 0.1833 ? '#fff' : '#000' }
}

/** Relative luminance of a colour `#rrggbb` as WCAG 2.2 counts it, from 0 to 1. */
export function luminance(hex: string): number {
  return [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
    const share = Number.parseInt(hex.substr(1 + 2 * index, 2), 16) / 255
    return sum + weight * (share > 0.04045 ? ((share + 0.055) / 1.055) ** 2.4 : share / 12.92)
  }, 0)
}
