import type { AgentRequests, AgentRequestsDeps } from './agent-requests.ts'
import type { AgentRequest } from './feature-types.ts'
import { loadOnce } from './load-once.ts'
import type { StreamEvent } from './types.ts'

export interface LateRequests
  extends Pick<AgentRequests, 'acknowledgeNavigation' | 'acknowledgeScreenshot' | 'uploadScreenshot'> {
  all(): readonly AgentRequest[]
  dismiss(id: string): void
  handleEvent(event: StreamEvent): void
  begin(): void
  stop(): void
}

/**
 * Imports the code for agents' requests at the first request, and queues events until the code is
 * loaded. If the import fails, it is retried at the next event or when the network works again.
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

    handleEvent(event) {
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
    if (handler) return replayEvents(handler)
    load().then(replayEvents, () => {})
  }

  function replayEvents(to: AgentRequests) {
    const events = waiting
    waiting = []
    for (const event of events) to.handleEvent(event)
  }
}
