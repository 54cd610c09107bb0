/** What `npm run mutation` changes, and the tests that should see it. */
export const modules: Record<string, { mutate: string[]; tests: string[] }> = {
  addresses: {
    mutate: ['destination/{addresses,destination-url,name-service,resolve}.ts'],
    tests: ['destination/*.test.ts'],
  },
  outcomes: {
    mutate: ['core/leads/delivery-outcomes.ts', 'core/leads/delivery-schedule.ts'],
    tests: ['core/leads/delivery-outcomes.test.ts'],
  },
  encoding: {
    mutate: ['gateway/events/event-stream-encoding.ts'],
    tests: ['gateway/events/event-stream-encoding.test.ts'],
  },
  streams: {
    mutate: ['gateway/events/{event-streams,stream-socket}.ts'],
    tests: ['gateway/events.test.ts'],
  },
  claims: {
    mutate: ['core/leads/delivery-claims.ts'],
    tests: ['core/leads/delivery-claims-steps.test.ts'],
  },
  results: {
    mutate: ['core/leads/delivery-results.ts'],
    tests: ['core/leads/delivery-results.test.ts'],
  },
  'event-log': {
    mutate: ['core/log/event-log.ts'],
    tests: ['core/log/event-log-steps.test.ts'],
  },
  replay: {
    mutate: ['core/log/{replay-window,subscriptions}.ts'],
    tests: ['core/log/{replay-window,subscriptions}.test.ts'],
  },
  idempotency: {
    mutate: ['core/idempotency.ts'],
    tests: ['core/leads/deliveries.test.ts', 'core/sessions/page-context.test.ts'],
  },
  access: {
    mutate: ['core/sessions/{grants,visitor-access}.ts'],
    tests: ['core/sessions/{grants,visitor-access}.test.ts'],
  },
  identification: {
    mutate: ['core/identity/{identification,identity}.ts'],
    tests: ['core/identity/*.test.ts'],
  },
}
