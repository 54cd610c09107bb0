/** Older browsers have no segmenter. They split flags and families into code points. */
const graphemes = Intl.Segmenter && new Intl.Segmenter()

/** Returns the first letter or emoji of a name, for an avatar without a picture. */
export function initialOf(name: string) {
  const shown = name.replace(/^[\s\p{Default_Ignorable_Code_Point}]+/u, '')
  const [first] = graphemes ? graphemes.segment(shown) : shown
  return (typeof first === 'object' ? first.segment : (first ?? '')).toUpperCase()
}

/** Returns the first letters of a person's first and last name, for an avatar without a picture. */
export function initialsOf(name: string) {
  const words = name.trim().split(/\s+/)
  return initialOf(words[0] ?? '') + (words.length > 1 ? initialOf(words.at(-1)!) : '')
}
