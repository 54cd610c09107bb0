/** Files that `npm run verify -- mutation` mutates, and the tests that should detect the mutants. */
export const modules: Record<string, { mutate: string[]; tests: string[] }> = {
  addresses: {
    mutate: ['platform/addresses/{addresses,resolve}.ts'],
    tests: ['platform/addresses/*.test.ts'],
  },
  outcomes: {
    mutate: ['core/deliveries/outcomes.ts', 'contract/retry-delay.ts'],
    tests: ['core/deliveries/outcomes.test.ts'],
  },
  streams: {
    mutate: ['gateway/events/event-streams.ts', 'gateway/http/stream-socket.ts'],
    tests: ['gateway/events/event-streams.test.ts'],
  },
  claims: {
    mutate: ['core/deliveries/{claims,worker-room,dispatch}.ts'],
    tests: ['core/deliveries/{delivery-claims,worker-room,work-stream}.test.ts'],
  },
  results: {
    mutate: ['core/deliveries/results.ts'],
    tests: ['core/deliveries/delivery-results.test.ts'],
  },
  'event-log': {
    mutate: ['core/log/event-log.ts'],
    tests: ['core/log/{event-log,event-log-limits}.test.ts', 'core/conversations/assignments.test.ts'],
  },
  replay: {
    mutate: ['core/streams/replay-window.ts'],
    tests: ['core/streams/replay-window.test.ts'],
  },
  subscriptions: {
    mutate: ['core/streams/stream-subscriptions.ts'],
    tests: ['core/streams/{stream-subscriptions-steps,lost-wakeups}.test.ts'],
  },
  idempotency: {
    mutate: ['core/idempotency/idempotency.ts'],
    tests: ['core/idempotency/idempotency.test.ts'],
  },
  grants: {
    mutate: ['core/sessions/grants.ts'],
    tests: ['core/sessions/grants.test.ts'],
  },
  access: {
    mutate: ['core/sessions/visitor-access.ts'],
    tests: ['core/sessions/visitor-access.test.ts'],
  },
  assertions: {
    mutate: ['core/identity/identity-assertions.ts'],
    tests: ['core/identity/identity-assertions.test.ts'],
  },
  identification: {
    mutate: ['core/identity/{identification,session-replacements}.ts'],
    tests: ['core/identity/{identification,identification-*,identity-change}.test.ts'],
  },
}
