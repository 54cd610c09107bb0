import type { ConsentDeps } from './consent.ts'
import type { WidgetError } from './errors.ts'
import { loadOnce } from './load-once.ts'

/** Imports the code of the consent step on first use, because most installations need no consent. */
export function createLateConsent(deps: ConsentDeps) {
  const consent = loadOnce(async () => (await import('./consent.ts')).createConsent(deps), 'network_error')

  return {
    consent,

    /** Waits for the visitor's consent if it is required, then makes the call. */
    async consented<Answer>(call: () => Promise<Answer>): Promise<Answer> {
      try {
        if (!deps.config()?.consent?.required) return await call()
      } catch (error) {
        if ((error as WidgetError).code !== 'ConsentRequired') throw error
      }
      return (await consent()).run(call)
    },
  }
}
