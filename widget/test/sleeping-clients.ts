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
  const { clock, server } = serverPerTest()
  return {
    clock,
    server,

    start: (siteKey: SiteKey = 'pk_friendly', options: Partial<Parameters<typeof createClientHarness>[2]> = {}) =>
      createClientHarness(server, siteKey, { clock, ...options }),

    renewals: () => server.seen('POST /sessions/renew'),
    sends: () => server.seen('POST /messages'),

    /** Lets the computer sleep. The service closes the stream meanwhile. */
    sleep(ms: number, siteKey: SiteKey = 'pk_friendly') {
      clock.sleep(ms)
      server.conversation(siteKey).cutStreams()
    },

    /** Waits until all requests are answered and all timers of the next seconds have run. */
    async settled() {
      let seen = -1
      await until(
        () => {
          const isQuiet = seen === server.requests.length
          seen = server.requests.length
          return isQuiet
        },
        () => clock.advance(0),
      )
    },
  }
}
