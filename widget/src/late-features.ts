import type { SupportedRequests } from './agent-requests.ts'
import type { Api } from './api.ts'
import { WidgetError } from './errors.ts'
import type { Emitter } from './events.ts'
import type { createFeatures, FeatureOperations, Features } from './features.ts'
import { loadOnce } from './load-once.ts'
import type { Platform } from './platform.ts'
import { featureRecordKey } from './session-record.ts'
import type { PageContext, SessionView, StreamEvent, WidgetConfig, WidgetEventMap, WidgetMessage } from './types.ts'

/** Makes calls with the grants of one session, and of no other that may follow it. */
export type Grants = () => <Answer>(call: (grant: string) => Promise<Answer>) => Promise<Answer>

export interface FeaturesDeps {
  api: Pick<Api, 'call' | 'exchange'>
  platform: Platform
  emitter: Emitter<WidgetEventMap>
  siteKey: string
  supports?: Partial<SupportedRequests>
  config(): WidgetConfig | undefined
  session(): SessionView | undefined
  messages(): readonly WidgetMessage[]
  pageContext(): PageContext | undefined
  /** Of the present session. */
  grants: Grants
}

/** Fetches `features.ts`, or has it. */
export type LoadFeatures = () => Promise<{ createFeatures: typeof createFeatures }>

/** Results of operations while the features are not loaded. */
const unloaded = {
  presence: { typing: [], isClosed: false },
  activity: [],
  requests: [],
  formDue: undefined,
  formState: { status: 'open' },
  stopTyping: undefined,
  dismissRequest: undefined,
}

/** These operations load the features and return a promise. The quiet ones ignore a failure to load. */
const answered = ['acknowledgeNavigation', 'acknowledgeScreenshot', 'uploadScreenshot', 'submitForm'] as const
const quiet: readonly string[] = ['prepare', 'startTyping', 'updatePageContext']

/**
 * Features beside messages (typing, presence, forms, agents' requests, page reports) are loaded when first needed:
 * on their first event or call, if the installation has a form, or if an earlier page has stored state of them.
 */
export function createLateFeatures(loadFeatures: LoadFeatures, deps: FeaturesDeps) {
  const { emitter, platform, siteKey, config } = deps
  let features: Features | undefined
  let waiting: [event: StreamEvent, receivedAtMs: number][] = []
  const load = loadOnce(async () => {
    const { createFeatures } = await loadFeatures()
    features = createFeatures(deps)
    const session = deps.session()
    if (session) features.handlers['session.ready']({ session })
    for (const one of waiting) features.takeEvent(...one)
    waiting = []
    return features
  }, 'network_error')

  // Subscribed first, so that the state is current when other handlers run.
  for (const name of ['session.ready', 'message.queued', 'messages.changed', 'connection.changed'] as const)
    emitter.on(name, (payload) => features?.handlers[name](payload as never))

  return {
    /** Restores the state of the page before. Never rejects. */
    async start() {
      waiting = []
      if (features) features.load()
      else if (platform.storage.getItem(featureRecordKey(siteKey))) await load().catch(ignored)
    },

    /** The configuration is loaded. Resolves when the due form is known. */
    async configure() {
      const { preChat, offline } = config()?.forms ?? {}
      if (preChat || offline) await load().catch(ignored)
    },

    /** The same visitor continues the conversation in another session. */
    changeSession: (sessionId: string) => features?.changeSession(sessionId),

    /** An event of the stream, in order. */
    takeEvent(event: StreamEvent) {
      const receivedAtMs = platform.clock.now()
      if (features) return features.takeEvent(event, receivedAtMs)
      if (/^(typing|agent|conv|nav|screen)/.test(event.type)) waiting.push([event, receivedAtMs])
      if (waiting[0]) load().catch(ignored)
    },

    operations: Object.fromEntries(
      [...Object.keys(unloaded), ...answered, ...quiet].map((name) => [name, operation(name as keyof typeof unloaded)]),
    ) as unknown as FeatureOperations,
  }

  function operation(name: keyof typeof unloaded) {
    return (...given: unknown[]) => {
      const run = ({ operations }: Features) => (operations[name] as (...given: unknown[]) => unknown)(...given)
      if (features) return run(features)
      if (name in unloaded) return unloaded[name]
      if (quiet.includes(name)) return load().then(run).catch(ignored)
      const asked = deps.grants()
      return load().then((loaded) => {
        // The visitor may have changed during the load.
        if (asked !== deps.grants()) throw new WidgetError('session_ended', { terminal: true })
        return run(loaded)
      })
    }
  }
}

function ignored() {}
