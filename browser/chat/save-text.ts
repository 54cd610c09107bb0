/** Saves a text as a file. */
export function saveText(name: string, type: string, ...parts: string[]) {
  const href = URL.createObjectURL(new Blob(parts, { type }))
  Object.assign(document.createElement('a'), { href, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}
