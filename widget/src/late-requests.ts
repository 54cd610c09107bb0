import type { AgentRequests, AgentRequestsDeps } from './agent-requests.ts'
import { loadOnce } from './load-once.ts'
import type { AgentRequest, StreamEvent } from './types.ts'

export interface LateRequests
  extends Pick<AgentRequests, 'acknowledgeNavigation' | 'acknowledgeScreenshot' | 'uploadScreenshot'> {
  all(): readonly AgentRequest[]
  dismiss(id: string): void
  takeEvent(event: StreamEvent): void
  begin(): void
  stop(): void
}

/**
 * Agents' requests are rare, so their code is loaded with the first one. Events are queued in order until then. A failed
 * load is retried when the network returns and with each further event.
 */
export function createLateRequests(deps: AgentRequestsDeps): LateRequests {
  const { records } = deps
  const { lifecycle } = deps.platform
  let handler: AgentRequests | undefined
  let waiting: StreamEvent[] = []
  const load = loadOnce(async () => {
    handler = (await import('./agent-requests.ts')).createAgentRequests(deps)
    return handler
  }, 'network_error')
  lifecycle.subscribe((signal) => {
    if (signal === 'online' && waiting.length > 0) drain()
  })

  return {
    all: () => records.current().requests,
    acknowledgeNavigation: (...given) => load().then((one) => one.acknowledgeNavigation(...given)),
    acknowledgeScreenshot: (...given) => load().then((one) => one.acknowledgeScreenshot(...given)),
    uploadScreenshot: (...given) => load().then((one) => one.uploadScreenshot(...given)),
    dismiss: (id) =>
      void load().then(
        (one) => one.dismiss(id),
        () => {},
      ),

    takeEvent(event) {
      if (/^(navigation|screenshot)\./.test(event.type)) waiting = [...waiting, event]
      if (waiting.length > 0) drain()
    },

    begin() {
      if (handler) handler.begin()
      else if (records.current().requests.length > 0)
        load().then(
          (one) => one.begin(),
          () => {},
        )
    },

    stop() {
      waiting = []
      handler?.stop()
    },
  }

  function drain() {
    if (handler) return take(handler)
    load().then(take, () => {})
  }

  function take(to: AgentRequests) {
    const events = waiting
    waiting = []
    for (const event of events) to.takeEvent(event)
  }
}
