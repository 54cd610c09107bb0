import { type ClientHarness, createClientHarness, until } from './client-harness.ts'
import type { SiteKey } from './scenarios.ts'
import { serverPerTest } from './server-per-test.ts'

export const grantMs = 900_000
export const nap = 1_200_000
export const night = 3 * 3_600_000
/** Name of the stored session of `pk_friendly`. */
export const record = 'service.widget.1.pk_friendly'

export const isOnline = ({ client }: ClientHarness) => client.connection() === 'online'

/** Prepares clients on a computer that sleeps. Call it at the top level of a test file. */
export function sleepingClients() {
  const fixture = serverPerTest()
  return {
    fixture,

    start: (siteKey: SiteKey = 'pk_friendly', options: Partial<Parameters<typeof createClientHarness>[2]> = {}) =>
      createClientHarness(fixture.server, siteKey, { clock: fixture.clock, ...options }),

    renewals: () => fixture.server.seen('POST /sessions/renew'),
    sends: () => fixture.server.seen('POST /messages'),

    /** Lets the computer sleep. The service closes the stream meanwhile. */
    sleep(ms: number, siteKey: SiteKey = 'pk_friendly') {
      fixture.clock.sleep(ms)
      fixture.server.conversation(siteKey).cutStreams()
    },

    /** Waits until all requests are answered and all timers of the next seconds have run. */
    async settled() {
      let seen = -1
      await until(
        () => {
          const isQuiet = seen === fixture.server.requests.length
          seen = fixture.server.requests.length
          return isQuiet
        },
        () => fixture.clock.advance(0),
      )
    },
  }
}
