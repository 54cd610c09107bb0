import type { EventStore } from './store/events.ts'

export interface LogHeads {
  /** The last sequence given out in each of these conversations, as far as it is known here: a good guess. */
  get(conversationIds: string[]): Promise<number[]>
  /** The log goes at least this far. */
  advance(conversationId: string, sequence: number): void
  /** What is remembered has proved wrong. */
  forget(conversationIds: string[]): void
}

const maxRemembered = 100_000

/** Remembers where logs end, so that a send is one insert. The unique index corrects it where it is behind. */
export function createLogHeads(events: Pick<EventStore, 'heads'>): LogHeads {
  const heads = new Map<string, number>()

  function remember(conversationId: string, sequence: number) {
    heads.delete(conversationId)
    heads.set(conversationId, sequence)
    if (heads.size > maxRemembered) {
      const [oldest] = heads.keys()
      if (oldest !== undefined) heads.delete(oldest)
    }
  }

  return {
    async get(conversationIds) {
      const unknown = conversationIds.filter((id) => !heads.has(id))
      if (unknown.length > 0) {
        const ends = await events.heads(unknown)
        for (const id of unknown) remember(id, Math.max(ends.get(id) ?? 0, heads.get(id) ?? 0))
      }
      return conversationIds.map((id) => heads.get(id) ?? 0)
    },

    advance(conversationId, sequence) {
      if ((heads.get(conversationId) ?? -1) < sequence) remember(conversationId, sequence)
    },

    forget(conversationIds) {
      for (const id of conversationIds) heads.delete(id)
    },
  }
}
