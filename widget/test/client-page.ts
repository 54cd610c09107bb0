import { createServiceClient } from '../src/client-entry.ts'

/** Script of a test page with a headless client. The test calls `startClient(serverUrl)` and then uses `client`. */
Object.assign(globalThis, {
  startClient(apiBaseUrl: string) {
    const client = createServiceClient({ siteKey: 'pk_friendly', apiBaseUrl })
    Object.assign(globalThis, { client })
    return client.start()
  },
  shown: () =>
    (globalThis as unknown as { client: ReturnType<typeof createServiceClient> }).client
      .messages()
      .map(({ body, deliveryStatus }) => `${body}: ${deliveryStatus}`),
})
