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

/** What is answered while nothing is loaded. */
const unloaded = {
  presence: { typing: [], isClosed: false },
  activity: [],
  requests: [],
  formDue: undefined,
  formState: { status: 'open' },
  stopTyping: undefined,
  dismissRequest: undefined,
}

/** These wait for what is to be loaded and answer with a promise; of the quiet ones nobody hears that it could not be. */
const answered = ['acknowledgeNavigation', 'acknowledgeScreenshot', 'uploadScreenshot', 'submitForm'] as const
const quiet: readonly string[] = ['prepare', 'startTyping', 'updatePageContext']

/**
 * What a chat has beside messages (typing, presence, forms, agents' requests, page reports) is fetched when it is first needed:
 * an event of it arrives, the page asks for it, the installation has a form, or the page before left something of it.
 */
export function createLateFeatures(loadFeatures: LoadFeatures, deps: FeaturesDeps) {
  const { emitter, platform, siteKey, config } = deps
  let features: Features | undefined
  let waiting: [event: StreamEvent, receivedAtMs: number][] = []
  const load = loadOnce(async () => {
    const { createFeatures } = await loadFeatures()
    features = createFeatures(deps)
    const session = deps.session()
    if (session) features.told['session.ready']({ session })
    for (const one of waiting) features.takeEvent(...one)
    waiting = []
    return features
  }, 'network_error')

  // Subscribed before anybody else: whoever hears of it finds this done.
  for (const name of ['session.ready', 'message.queued', 'messages.changed', 'connection.changed'] as const)
    emitter.on(name, (payload) => features?.told[name](payload as never))

  return {
    /** A page begins: what the one before it left is read. Never rejects. */
    async start() {
      waiting = []
      if (features) features.load()
      else if (platform.storage.getItem(featureRecordKey(siteKey))) await load().catch(ignored)
    },

    /** The configuration is there. Resolves when it is known which form is due. */
    async configure() {
      const { preChat, offline } = config()?.forms ?? {}
      if (preChat || offline) await load().catch(ignored)
    },

    /** The same visitor goes on with the conversation in another session. */
    goOn: (sessionId: string) => features?.goOn(sessionId),

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
        // What one person asked for is not done as the next one.
        if (asked !== deps.grants()) throw new WidgetError('session_ended', { terminal: true })
        return run(loaded)
      })
    }
  }
}

function ignored() {}
