import { createServiceClient } from '../src/client-entry.ts'

/** A page with a headless client of its own, as an integrator would have it: `startClient(serverUrl)`, then `client`. */
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
