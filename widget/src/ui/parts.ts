import type { parts } from './package-parts.ts'

/**
 * The parts of the user interface that are loaded when a visitor needs them: the cards of agents' requests;
 * the forms with consent and rating; each language besides English. A part imports nothing that is loaded
 * already, so that the script tag's build of it is one file without imports.
 */
export type Parts = { [Name in keyof typeof parts]: Awaited<ReturnType<(typeof parts)[Name]>> }

/** Loads a part. Rejects if loading fails; a later call tries again. */
export type LoadPart = <Name extends keyof Parts>(name: Name) => Promise<Parts[Name]>

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
