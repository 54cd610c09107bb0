/** The first letter of a name. */
export function initialOf(name: string): string {
  return ([...name.trim()][0] ?? '').toUpperCase()
}

/** The first letters of a person's first and last name. */
export function initialsOf(name: string): string {
  const words = name.trim().split(/\s+/)
  return initialOf(words[0] ?? '') + (words.length > 1 ? initialOf(words.at(-1)!) : '')
}
