/** In the npm package, the host's bundler puts each part into a file of its own. */
export const parts = {
  requests: () => import('./requests/request-card.ts'),
  forms: () => import('./forms/late-forms.ts'),
  de: () => import('./languages/de.ts'),
  es: () => import('./languages/es.ts'),
  fr: () => import('./languages/fr.ts'),
  ar: () => import('./languages/ar.ts'),
  ja: () => import('./languages/ja.ts'),
}
