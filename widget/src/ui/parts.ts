/**
 * The parts of the user interface that are loaded when a visitor needs them: the cards of agents' requests;
 * the forms with consent and rating; each language besides English. A part imports nothing that is loaded
 * already, so that the script tag's build of it is one file without imports. In the npm package, the host's
 * bundler puts each part into a file of its own.
 */
export const packageParts = {
  requests: () => import('./requests/request-card.ts'),
  forms: () => import('./forms/late-forms.ts'),
  de: () => import('./languages/de.ts'),
  es: () => import('./languages/es.ts'),
  fr: () => import('./languages/fr.ts'),
  ar: () => import('./languages/ar.ts'),
  ja: () => import('./languages/ja.ts'),
}

export type Parts = { [Name in keyof typeof packageParts]: Awaited<ReturnType<(typeof packageParts)[Name]>> }

/** Loads a part. Rejects if loading fails; a later call tries again. */
export type LoadPart = <Name extends keyof Parts>(name: Name) => Promise<Parts[Name]>
