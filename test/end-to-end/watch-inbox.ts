import { ConnectError } from '@connectrpc/connect'
import type { WatchConversationsResponse } from '#proto/messaging/v1/messaging_pb.js'
import type { Operator } from '../support/operator.ts'
import { until } from '../support/until.ts'

/** Opens an operator's inbox stream and collects its frames. */
export function watchInbox({ messaging }: Operator, workspaceId?: string) {
  const abort = new AbortController()
  const frames: WatchConversationsResponse['frame'][] = []
  const ended = (async () => {
    const request = workspaceId === undefined ? {} : { workspaceId }
    for await (const { frame } of messaging.watchConversations(request, { signal: abort.signal })) frames.push(frame)
    return 'ended'
  })().catch((error) => ConnectError.from(error).code)
  return {
    frames,
    ended,
    close: () => abort.abort(),
    ready: () => until('the inbox', () => frames.some(({ case: kind }) => kind === 'ready')),
    /** Returns the events of a conversation, in order, without repeated events. */
    eventsOf(conversationId: string) {
      const events = frames.flatMap((frame) =>
        frame.case === 'changed' && frame.value.conversation?.conversationId === conversationId
          ? frame.value.events
          : [],
      )
      return events.filter(({ sequence }, index) => events.findIndex((event) => event.sequence === sequence) === index)
    },
    latest: (conversationId: string) =>
      frames
        .flatMap(({ case: kind, value }) => (kind === 'changed' ? [value.conversation!] : []))
        .findLast((conversation) => conversation.conversationId === conversationId),
  }
}
