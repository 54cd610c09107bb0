import { onTestFinished } from 'vitest'
import type { Lifecycle, LifecycleSignal } from '../../browser/platform.ts'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import { createManualClock } from '../../test/support/manual-clock.ts'
import { createServiceClient } from '../src/client/client.ts'
import type { ServiceClientOptions } from '../src/client/client-options.ts'
import type { WidgetEventName, WidgetMessage } from '../src/vocabulary/types.ts'
import type { ScenarioServer } from './scenario-server.ts'
import type { SiteKey } from './scenarios.ts'

const watched: WidgetEventName[] = [
  'message.queued',
  'message.retrying',
  'message.retry.exhausted',
  'message.accepted',
  'message.received',
  'message.state.changed',
  'session.ready',
  'session.expired',
  'session.revoked',
  'session.closed',
  'visitor.banned',
  'connection.disabled',
  'replay.reset.required',
  'error',
  'typing.started',
  'typing.stopped',
  'presence.changed',
  'navigation.requested',
  'navigation.cancelled',
  'screenshot.requested',
  'screenshot.cancelled',
  'form.changed',
]

export type ClientHarness = ReturnType<typeof createClientHarness>

/**
 * Creates a headless client of the scenario server with a controlled clock, randomness and lifecycle. It
 * stops at the end of the test.
 */
export function createClientHarness(
  server: ScenarioServer,
  siteKey: SiteKey,
  {
    clock = createManualClock(),
    storage = storageFor('memory'),
    options,
  }: {
    clock?: ReturnType<typeof createManualClock>
    storage?: KeyValueStorage
    options?: Partial<ServiceClientOptions>
  } = {},
) {
  const listeners = new Set<(signal: LifecycleSignal) => void>()
  const network = { online: true }
  const lifecycle: Lifecycle = {
    isOnline: () => network.online,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const fetch = counted(options?.platform?.fetch ?? fetchFromPage)
  const platform = { clock, storage, lifecycle, random: () => 0.5, ...options?.platform, fetch }
  const client = createServiceClient({ siteKey, apiBaseUrl: server.url, ...options, platform })
  onTestFinished(() => client.stop())
  const events: { name: WidgetEventName; payload: unknown }[] = []
  for (const name of watched) client.on(name, (payload) => events.push({ name, payload }))

  return {
    client,
    clock,
    storage,
    network,
    events,
    names: () => events.map(({ name }) => name),
    count: (name: WidgetEventName) => events.filter((event) => event.name === name).length,
    signal(signal: LifecycleSignal) {
      for (const listener of [...listeners]) listener(signal)
    },
    bodies: () => client.messages().map(({ body }) => body),
    states: () => client.messages().map(({ deliveryStatus }: WidgetMessage) => deliveryStatus),
    async started() {
      await client.start()
      await until(() => client.connection() === 'online')
    },
  }
}

/** Sets the `Origin` header, which a browser would set. */
export const fetchFromPage: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('Origin', 'http://shop.test')
  return fetch(input, { ...init, headers })
}

/** The requests of the newest harness. Those of earlier tests may hang for ever. */
let requests = { unanswered: 0 }

/** Returns a fetch that counts its unanswered requests. */
function counted(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  const own = { unanswered: 0 }
  requests = own
  return async (input, init) => {
    own.unanswered += 1
    try {
      return await fetch(input, init)
    } finally {
      own.unanswered -= 1
    }
  }
}

/**
 * Waits until the newest client has sent what it is about to send, and every request has an answer.
 * After it, a test can say what was not sent.
 */
export async function settled(): Promise<void> {
  for (let quietTurns = 0; quietTurns < 5; quietTurns = requests.unanswered === 0 ? quietTurns + 1 : 0)
    await new Promise((resolve) => setTimeout(resolve, 1))
}

/**
 * Waits in real time until the condition is true, because sockets do not follow the test's clock.
 * Calls `step` after each check.
 */
export async function until(condition: () => boolean, step: () => void = () => {}): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`condition was not met within 60 s: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
    step()
  }
}
