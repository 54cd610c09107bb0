/** An answer that was sent off and is not known to have arrived. */
export interface Unsent {
  operationId: string
  body: string
  /** As the first try named it: the same operation has the same input. */
  agentName: string
}

export interface Drafts {
  text(conversationId: string): string
  unsent(conversationId: string): Unsent[]
  keepText(conversationId: string, text: string): void
  keepUnsent(conversationId: string, unsent: Unsent[]): void
  /** Nothing of the operator's is left behind. */
  clear(): void
}

interface Kept {
  text: string
  unsent: Unsent[]
}

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

/**
 * What an operator has begun to write, kept for the tab: it outlives a reload and a session that ends. It belongs to one
 * operator of one workspace; another one who signs in finds nothing of it.
 */
export function createDrafts(storage: Storage, owner: string): Drafts {
  const key = 'service.console.drafts'
  let kept = read()

  function read(): Record<string, Kept> {
    try {
      const found = JSON.parse(storage.getItem(key) ?? '{}')
      return found.owner === owner ? found.conversations : {}
    } catch {
      return {}
    }
  }

  function keep(conversationId: string, change: Partial<Kept>) {
    const { text, unsent } = { text: '', unsent: [], ...kept[conversationId], ...change }
    const { [conversationId]: _, ...others } = kept
    kept = text === '' && unsent.length === 0 ? others : { ...others, [conversationId]: { text, unsent } }
    storage.setItem(key, JSON.stringify({ owner, conversations: kept }))
  }

  return {
    text: (conversationId) => kept[conversationId]?.text ?? '',
    unsent: (conversationId) => kept[conversationId]?.unsent ?? [],
    keepText: (conversationId, text) => keep(conversationId, { text }),
    keepUnsent: (conversationId, unsent) => keep(conversationId, { unsent }),
    clear() {
      kept = {}
      storage.removeItem(key)
    },
  }
}
