import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../src/client-entry.ts'
import type { Lifecycle, LifecycleSignal, TabSlot, Tabs } from '../src/platform.ts'
import { createMemoryStorage, type KeyValueStorage } from '../src/storage.ts'
import type { WidgetErrorDetail, WidgetEventMap } from '../src/types.ts'
import { waitForSlot } from '../src/ui/page-tabs.ts'
import type { ServiceMessage } from '../src/wire.ts'
import { createManualClock, type ManualClock } from './manual-clock.ts'
import type { Scenario, SiteKey } from './scenarios.ts'

/** Where the suite runs: in a page or in Node, both with the scenario server at an address of its own. */
export interface Surroundings {
  serverUrl: string
  fetch: typeof fetch
}

/** A request as the scenario server saw it. */
export interface Seen {
  headers: Record<string, string>
  query: Record<string, string>
  body?: Record<string, unknown>
}

export type SuiteWorld = ReturnType<typeof createSuiteWorld>

/** A tab with a headless client in it. */
export interface Tab {
  client: ServiceClient
  clock: ManualClock
  storage: KeyValueStorage
  network: { online: boolean }
  /** Hides or shows the tab. */
  setVisible(isVisible: boolean): void
  told: { name: string; payload: unknown }[]
  count(name: keyof WidgetEventMap): number
  errors(): string[]
  bodies(): string[]
  states(): string[]
  signal(signal: LifecycleSignal): void
  /** The page is gone from one moment to the next, as in a reload or a crash. */
  kill(): void
  online(): Promise<void>
}

/** One scenario's world: the server as it is told to behave, and tabs with time, network and life in the scenario's hands. */
export function createSuiteWorld({ serverUrl, fetch }: Surroundings) {
  const siteKey: SiteKey = 'pk_friendly'
  const tabs: Tab[] = []

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
    /** Makes the server misbehave from now on. */
    set: (change: Scenario) => control('set', change),
    requests: (route: string) => control<Seen[]>('requests', route),
    /** Streams that are open, of all sessions. */
    streams: () => control<number>('streams'),
    /** What is stored, conversation by conversation. */
    stored: () => control<ServiceMessage[][]>('messages'),
    /** In the newest session's conversation. */
    agentSays: (body: string) => control('agentSays', body),
    agentSaysToAll: (body: string) => control('agentSaysToAll', body),
    heartbeat: () => control('heartbeat'),
    cutStreams: () => control('cutStreams'),
    emit: (type: string) => control('emit', type),
    revoke: () => control('revoke'),
    disableConnection: () => control('disableConnection'),
    closeSession: () => control('closeSession'),
    stalled: () => control<number>('stalled'),
    release: () => control('release'),

    close() {
      for (const { kill } of [...tabs]) kill()
    },
  }

  /** Waits for something that real requests bring about, while time goes by a little faster than on the wall. */
  async function until(condition: () => unknown): Promise<void> {
    const deadline = performance.now() + 15_000
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`This did not come true: ${condition}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
      for (const { clock } of tabs) clock.advance(20)
    }
  }

  /** A tab with a headless client. With the `storage` of another one it is that tab reloaded, with a `copyOf` its duplicate. */
  function tab(
    setting: {
      storage?: KeyValueStorage
      copyOf?: Tab
      options?: Partial<ServiceClientOptions>
      /** How the browser reaches the service. The tabs of other worlds do not share slots with these. */
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
      try {
        const response = await fetch(input, { ...init, signal })
        return life.signal.aborted ? await new Promise<Response>(() => {}) : response
      } catch (error) {
        // A page that is gone hears of nothing.
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
    const told: { name: string; payload: unknown }[] = []
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
    for (const name of names) client.on(name, (payload) => told.push({ name, payload }))

    function signal(signal: LifecycleSignal) {
      for (const listener of [...listeners]) listener(signal)
    }

    const made: Tab = {
      client,
      clock,
      storage,
      network,
      told,
      count: (name: keyof WidgetEventMap) => told.filter((one) => one.name === name).length,
      errors: () =>
        told.filter(({ name }) => name === 'error').map(({ payload }) => (payload as WidgetErrorDetail).code),
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
  const copy = createMemoryStorage()
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

/** The code that a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error) => (error as { code: string }).code,
  )
}
