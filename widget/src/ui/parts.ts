/**
 * The parts of the user interface that are loaded when a visitor needs them: the cards of agents' requests;
 * the forms with consent and rating; each language besides English. A part imports nothing that is loaded
 * already, so that the script tag's build of it is one file without imports. In the npm package, the host's
 * bundler puts each part into a file of its own.
 */
export const packageParts = {
  requests: () => import('./requests/request-card.ts'),
  forms: () => import('./forms/late-forms.ts'),
}

/** Texts of a language as its file has them, with placeholders and plural forms. */
export type TextData = string | string[] | { [key: string]: TextData }

export type Parts = { [Name in keyof typeof packageParts]: Awaited<ReturnType<(typeof packageParts)[Name]>> }

/** Loads a part, or a language by its tag. Rejects if loading fails; a later call tries again. */
export interface LoadPart {
  <Name extends keyof Parts>(name: Name): Promise<Parts[Name]>
  (language: string): Promise<{ texts: TextData; reviewedBy: string | null }>
}

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
