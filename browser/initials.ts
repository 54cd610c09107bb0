/** Returns the first letter of a name, for an avatar without a picture. */
export function initialOf(name: string): string {
  return ([...name.trim()][0] ?? '').toUpperCase()
}

/** Returns the first letters of a person's first and last name, for an avatar without a picture. */
export function initialsOf(name: string): string {
  const words = name.trim().split(/\s+/)
  return initialOf(words[0] ?? '') + (words.length > 1 ? initialOf(words.at(-1)!) : '')
}
