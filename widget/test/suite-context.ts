import { waitForSlot } from '../../browser/page-tabs.ts'
import type { Lifecycle, LifecycleSignal, TabSlot, Tabs } from '../../browser/platform.ts'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts'
import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../src/client-entry.ts'
import type { ServiceMessage } from '../src/vocabulary/gen/wire.ts'
import type { WidgetErrorDetail, WidgetEventMap } from '../src/vocabulary/types.ts'
import type { Scenario, SiteKey } from './scenarios.ts'

/** Address of the scenario server, and `fetch` of the platform on which the suite runs: a page or Node. */
interface SuiteOptions {
  serverUrl: string
  fetch: typeof fetch
}

/** A request that the scenario server has received. */
export interface Seen {
  headers: Record<string, string>
  query: Record<string, string>
  body?: Record<string, unknown>
}

export type SuiteContext = ReturnType<typeof createSuiteContext>

/** A simulated tab with a headless client. */
export interface Tab {
  client: ServiceClient
  clock: ManualClock
  storage: KeyValueStorage
  network: { online: boolean }
  /** Hides or shows the tab. */
  setVisible(isVisible: boolean): void
  events: { name: string; payload: unknown }[]
  count(name: keyof WidgetEventMap): number
  errors(): string[]
  bodies(): string[]
  states(): string[]
  signal(signal: LifecycleSignal): void
  /** Ends the page at once, as a reload or a crash does. */
  kill(): void
  online(): Promise<void>
}

/** Creates the context of one test: the scenario server, and tabs with controlled clock, network and lifecycle. */
export function createSuiteContext({ serverUrl, fetch }: SuiteOptions) {
  const siteKey: SiteKey = 'pk_friendly'
  const tabs: Tab[] = []
  /** Number of requests of the tabs that have no answer yet. */
  let pending = 0

  async function control<Result = unknown>(call: string, value?: unknown): Promise<Result> {
    const response = await fetch(`${serverUrl}/control`, {
      method: 'POST',
      body: JSON.stringify({ call, siteKey, value }),
    })
    return ((await response.json()) as { result: Result }).result
  }

  return {
    siteKey,
    tab,
    until,
    reset: () => control('reset'),
    /** Makes the server violate the contract in this way; by default it keeps it. */
    set: (change: Scenario) => control('set', change),
    requests: (route: string) => control<Seen[]>('requests', route),
    /** Returns the number of open streams of all sessions. */
    streams: () => control<number>('streams'),
    /** Returns the stored messages of each conversation. */
    stored: () => control<ServiceMessage[][]>('messages'),
    /** Sends an agent's message to the conversation of the newest session. */
    agentSays: (body: string) => control('agentSays', body),
    agentSaysToAll: (body: string) => control('agentSaysToAll', body),
    heartbeat: () => control('heartbeat'),
    revoke: () => control('revoke'),
    closeSession: () => control('closeSession'),
    stalled: () => control<number>('stalled'),
    release: () => control('release'),

    close() {
      for (const { kill } of [...tabs]) kill()
    },
  }

  /**
   * Waits for a condition and meanwhile advances the clocks of the tabs. Advances them slowly while
   * requests are pending, so that the requests do not time out.
   */
  async function until(condition: () => unknown): Promise<void> {
    const deadline = performance.now() + 60_000
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`condition was not met within 60 s: ${condition}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
      for (const { clock } of tabs) clock.advance(pending > 0 ? 20 : 250)
    }
  }

  /**
   * Opens a tab with a headless client. With `storage`, reloads the tab that has this storage. With
   * `copyOf`, duplicates the tab `copyOf`.
   */
  function tab(
    setting: {
      storage?: KeyValueStorage
      copyOf?: Tab
      options?: Partial<ServiceClientOptions>
      /**
       * Protocol of the connection to the service. It limits how many tabs of one test have a
       * stream at the same time.
       */
      protocol?: 'http/1.1' | 'h2' | 'http/1.1 without locks'
      isVisible?: boolean
    } = {},
  ): Tab {
    const clock = createManualClock()
    const storage = setting.storage ?? copyOf(setting.copyOf?.storage)
    const listeners = new Set<(signal: LifecycleSignal) => void>()
    const life = new AbortController()
    const slots = new Set<TabSlot>()
    const network = { online: true }
    let isVisible = setting.isVisible ?? true
    const { protocol = 'h2' } = setting
    const lifecycle: Lifecycle = {
      isOnline: () => network.online,
      isHidden: () => !isVisible,
      subscribe(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const ownTabs: Tabs = {
      isMultiplexed: () => protocol === 'h2',
      waitForSlot(...parts) {
        const slot = protocol === 'http/1.1 without locks' ? undefined : waitForSlot(...parts)
        if (slot) slots.add(slot)
        return slot
      },
    }
    const livingFetch: typeof fetch = async (input, init) => {
      const signal = AbortSignal.any([life.signal, ...(init?.signal ? [init.signal] : [])])
      pending += 1
      const answer = fetch(input, { ...init, signal }).finally(() => {
        pending -= 1
      })
      try {
        const response = await answer
        return life.signal.aborted ? await new Promise<Response>(() => {}) : response
      } catch (error) {
        // The promise of a killed page never settles.
        if (life.signal.aborted) await new Promise(() => {})
        throw error
      }
    }
    const client = createServiceClient({
      siteKey,
      apiBaseUrl: serverUrl,
      ...setting.options,
      platform: {
        clock,
        lifecycle,
        random: () => 0.5,
        fetch: livingFetch,
        tabs: ownTabs,
        ...(setting.options?.storage ? {} : { storage: whileAlive(storage, life.signal) }),
      },
    })
    const events: { name: string; payload: unknown }[] = []
    const names: (keyof WidgetEventMap)[] = [
      'message.queued',
      'message.retrying',
      'message.retry.exhausted',
      'message.accepted',
      'message.received',
      'offline.submitted',
      'session.ready',
      'session.revoked',
      'session.closed',
      'session.expired',
      'typing.started',
      'unread.changed',
      'error',
    ]
    for (const name of names) client.on(name, (payload) => events.push({ name, payload }))

    function signal(signal: LifecycleSignal) {
      for (const listener of [...listeners]) listener(signal)
    }

    const made: Tab = {
      client,
      clock,
      storage,
      network,
      events,
      count: (name: keyof WidgetEventMap) => events.filter((one) => one.name === name).length,
      errors: () =>
        events.filter(({ name }) => name === 'error').map(({ payload }) => (payload as WidgetErrorDetail).code),
      bodies: () => client.messages().map(({ body }) => body),
      states: () => client.messages().map(({ deliveryStatus }) => deliveryStatus),
      signal,
      setVisible(now) {
        isVisible = now
        signal(now ? 'visible' : 'hidden')
      },
      kill() {
        life.abort()
        listeners.clear()
        for (const slot of slots) slot.release()
        clock.advance = () => {}
        tabs.splice(tabs.indexOf(made), 1)
        client.stop()
      },
      async online() {
        await client.start()
        await until(() => client.connection() === 'online')
      },
    }
    tabs.push(made)
    return made
  }
}

function copyOf(storage: KeyValueStorage | undefined): KeyValueStorage {
  const copy = storageFor('memory')
  for (const key of ['service.widget.1.pk_friendly', 'service.widget.1.pk_friendly.outbox']) {
    const value = storage?.getItem(key)
    if (value) copy.setItem(key, value)
  }
  return copy
}

function whileAlive(storage: KeyValueStorage, life: AbortSignal): KeyValueStorage {
  return {
    getItem: (key) => storage.getItem(key),
    setItem: (key, value) => life.aborted || storage.setItem(key, value),
    removeItem: (key) => life.aborted || storage.removeItem(key),
  }
}

export function same(actual: unknown, expected: unknown) {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (is !== should) throw new Error(`Expected ${should}, got ${is}`)
}

/** Returns the error code with which a promise rejects. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error) => (error as { code: string }).code,
  )
}
