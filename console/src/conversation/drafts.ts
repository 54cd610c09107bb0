/** A reply that was sent without a confirmation. */
export interface Unsent {
  operationId: string
  body: string
  /** The name of the first try. A retry of an operation must have the same input. */
  agentName: string
}

export interface Drafts {
  text(conversationId: string): string
  unsent(conversationId: string): Unsent[]
  keepText(conversationId: string, text: string): void
  keepUnsent(conversationId: string, unsent: Unsent[]): void
  /** Deletes all drafts. */
  clear(): void
}

interface StoredDraft {
  text: string
  unsent: Unsent[]
}

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

/**
 * Drafts of one operator, stored in the tab. They survive a reload and an expired session.
 * Another operator who signs in does not see them.
 */
export function createDrafts(storage: Storage, owner: string): Drafts {
  const key = 'service.console.drafts'
  let stored = read()

  function read(): Record<string, StoredDraft> {
    try {
      const saved = JSON.parse(storage.getItem(key) ?? '{}')
      return saved.owner === owner ? saved.conversations : {}
    } catch {
      return {}
    }
  }

  function store(conversationId: string, change: Partial<StoredDraft>) {
    const { text, unsent } = { text: '', unsent: [], ...stored[conversationId], ...change }
    const { [conversationId]: _, ...others } = stored
    stored = text === '' && unsent.length === 0 ? others : { ...others, [conversationId]: { text, unsent } }
    storage.setItem(key, JSON.stringify({ owner, conversations: stored }))
  }

  return {
    text: (conversationId) => stored[conversationId]?.text ?? '',
    unsent: (conversationId) => stored[conversationId]?.unsent ?? [],
    keepText: (conversationId, text) => store(conversationId, { text }),
    keepUnsent: (conversationId, unsent) => store(conversationId, { unsent }),
    clear() {
      stored = {}
      storage.removeItem(key)
    },
  }
}
