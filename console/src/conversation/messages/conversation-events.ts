import { signal } from '@preact/signals'
import type { InboxEvent } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../../api.ts'

const pageSize = 100

/** Events of one conversation that the timeline shows between its messages, in order. */
export function createConversationEvents(
  messaging: Pick<Api['messaging'], 'listConversationEvents'>,
  conversationId: string,
) {
  const list = signal<readonly InboxEvent[]>([])

  function add(more: readonly InboxEvent[]) {
    const bySequence = new Map([...list.value, ...more].map((event) => [event.sequence, event]))
    list.value = [...bySequence.values()].sort((one, other) => one.sequence - other.sequence)
  }

  return {
    list,
    add,

    /**
     * Loads the events between the two sequences, without the events at these sequences. If
     * `beforeSequence` is undefined, loads all later events. Never rejects.
     */
    async load(afterSequence: number, beforeSequence?: number) {
      try {
        for (let after: number | undefined = afterSequence; after !== undefined; ) {
          const page: { events: InboxEvent[]; hasMore: boolean } = await messaging.listConversationEvents({
            conversationId,
            afterSequence: after,
            beforeSequence,
            limit: pageSize,
          })
          add(page.events)
          after = page.hasMore ? page.events.at(-1)?.sequence : undefined
        }
      } catch {
        // The messages are shown without events. The next reload of the conversation tries again.
      }
    },
  }
}
