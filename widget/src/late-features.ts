import { WidgetError } from './errors.ts'
import type { FeatureOperations } from './feature-operations.ts'
import type { createFeatures, Features, FeaturesDeps } from './features.ts'
import { loadOnce } from './load-once.ts'
import { featureRecordKey } from './session-record.ts'
import type { StreamEvent } from './types.ts'

/** Imports `features.ts`. */
export type LoadFeatures = () => Promise<{ createFeatures: typeof createFeatures }>

/** Results that operations return while `features.ts` is not loaded. */
const unloaded = {
  presence: { typing: [], isClosed: false },
  activity: [],
  requests: [],
  formDue: undefined,
  isOfflineFormOffered: false,
  formState: { status: 'open' },
  dismissRequest: undefined,
}

/**
 * Names of the operations that load `features.ts` on their first call and return a promise. If
 * loading fails, the operations in `answered` reject, and those in `quiet` resolve.
 */
const answered = ['acknowledgeNavigation', 'acknowledgeScreenshot', 'uploadScreenshot', 'submitForm'] as const
const quiet: readonly string[] = ['prepare', 'startTyping', 'stopTyping', 'setChatShown', 'updatePageContext']

/**
 * Imports the code for typing, presence, forms, agents' requests and page reports on demand. The
 * import starts at the first event of these features, or when the application calls an operation
 * that needs the code. It also starts if the installation has a form, or if an earlier page stored
 * the state of these features.
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
    for (const one of waiting) features.handleEvent(...one)
    waiting = []
    return features
  }, 'network_error')

  // The emitter calls handlers in the order in which they were subscribed. Subscribe to these
  // events first, so that the handlers of the application see the current state of the features.
  for (const name of ['session.ready', 'message.queued', 'messages.changed', 'connection.changed'] as const)
    emitter.on(name, (payload) => features?.handlers[name](payload as never))

  return {
    /** Restores the features' state that the previous page stored. Never rejects. */
    async start() {
      waiting = []
      if (features) features.load()
      else if (platform.storage.getItem(featureRecordKey(siteKey))) await load().catch(ignored)
    },

    /**
     * Call when the configuration is loaded. Loads the features if the installation has forms.
     * Resolves when `formDue` returns the correct form.
     */
    async configure() {
      const { preChat, offline } = config()?.forms ?? {}
      if (preChat || offline) await load().catch(ignored)
    },

    /**
     * Updates the stored state when the same visitor continues the conversation in another session.
     */
    changeSession: (sessionId: string) => features?.changeSession(sessionId),

    /** Handles an event of the stream. Queues events until the features are loaded. */
    handleEvent(event: StreamEvent) {
      const receivedAtMs = platform.clock.now()
      if (features) return features.handleEvent(event, receivedAtMs)
      if (/^(avail|typing|agent|conv|nav|screen)/.test(event.type)) waiting.push([event, receivedAtMs])
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
        // The visitor has changed while the code was loading, so the operation must not run.
        if (asked !== deps.grants()) throw new WidgetError('session_ended', { terminal: true })
        return run(loaded)
      })
    }
  }
}

function ignored() {}
