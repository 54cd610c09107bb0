type Rgb = readonly [number, number, number]

const fallbackAccent: Rgb = [37, 84, 214]
const white: Rgb = [255, 255, 255]
const black: Rgb = [0, 0, 0]
/** The panel's surface in each colour scheme, as in the style sheet. */
const lightSurface: Rgb = white
const darkSurface: Rgb = [23, 25, 31]

export interface AccentColors {
  /** The installation's colour, as `rgb()`. */
  accent: string
  /** Black or white: the one that reads better on it, never under 4.5 to 1. */
  onAccent: string
  /** For focus rings: the accent colour where it stands out from the surface, else the text's colour. */
  focusOnLight: string
  focusOnDark: string
}

/** The colours that follow from an installation's accent colour. What is not a hex colour gives the default one. */
export function accentColors(accentColor: string | undefined): AccentColors {
  const accent = parseHex(accentColor ?? '') ?? fallbackAccent
  const onAccent = contrast(accent, white) >= 4.5 ? white : black
  return {
    accent: css(accent),
    onAccent: css(onAccent),
    focusOnLight: css(contrast(accent, lightSurface) >= 3 ? accent : [22, 24, 29]),
    focusOnDark: css(contrast(accent, darkSurface) >= 3 ? accent : [238, 240, 244]),
  }
}

/** Contrast ratio of two colours as WCAG 2.2 counts it, from 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

export function parseHex(text: string): Rgb | undefined {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text)
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text)
  const digits = short ? short.slice(1).map((digit) => digit + digit) : long?.slice(1)
  return digits && (digits.map((pair) => Number.parseInt(pair, 16)) as unknown as Rgb)
}

function luminance(color: Rgb): number {
  const [r, g, b] = color.map((channel) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as unknown as Rgb
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`
}
