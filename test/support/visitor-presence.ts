import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import type { Operator } from './operator.ts'

/** Follows the presence of a workspace's visitors on an inbox stream. Reconnects after a failure. */
export function followPresence({ messaging }: Operator, workspaceId: string) {
  const abort = new AbortController()
  let states = new Map<string, Presence>()
  let isComplete = false

  async function follow() {
    for await (const { frame } of messaging.watchConversations({ workspaceId }, { signal: abort.signal })) {
      if (frame.case !== 'presence') continue
      if (frame.value.complete) states = new Map()
      isComplete = true
      for (const { conversationId, presence } of frame.value.conversations) states.set(conversationId, presence)
    }
  }
  void (async () => {
    while (!abort.signal.aborted) {
      await follow().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })()

  return {
    of: (conversationId: string) => states.get(conversationId) ?? Presence.GONE,
    isComplete: () => isComplete,
    /** Number of conversations that the stream has named. */
    size: () => states.size,
    close: () => abort.abort(),
  }
}
