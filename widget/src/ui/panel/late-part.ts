import type { LoadPart, Parts } from '../parts.ts'

/**
 * Returns a function that returns the part once it is loaded. Its first call begins to load. After a failure,
 * its next call tries again. `onSettled` is called after each attempt.
 */
export function latePart<Name extends 'requests' | 'forms'>(
  name: Name,
  { loadPart, addStyles }: { loadPart: LoadPart; addStyles(css: string): void },
  onSettled: (part: Parts[Name] | undefined) => void,
) {
  let part: Parts[Name] | undefined
  let isLoading = false
  return Object.assign(
    () => {
      if (!part && !isLoading) void load()
      return part
    },
    { isLoading: () => isLoading },
  )

  async function load() {
    isLoading = true
    part = await loadPart(name).catch(() => undefined)
    isLoading = false
    if (part) addStyles(part.styles)
    onSettled(part)
  }
}
