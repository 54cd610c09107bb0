/** A reply that the service has not confirmed. */
export interface Unsent {
  operationId: string
  body: string
  /** The agent's name in the first attempt. A retry of an operation must have the same input. */
  agentName: string
  /** The agent's picture in the first attempt. */
  avatarUrl?: string | undefined
  /** True if the conversation is closed after this reply. */
  closes?: boolean
}

export type Drafts = ReturnType<typeof createDrafts>

/** A draft of an internal note. It is apart from the draft of the reply and never sent to visitors. */
interface NoteDraft {
  body: string
  /** An attempt to add this note that the service has not confirmed. */
  attempt?: { operationId: string; body: string }
}

interface StoredDraft {
  text: string
  unsent: Unsent[]
  note?: NoteDraft
  /** True if the operator was writing the note and not the reply. */
  isNote?: boolean
}

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

/**
 * Stores the drafts of one operator in the tab. They survive a reload and an expired session.
 * Another operator who signs in does not see them.
 */
export function createDrafts(storage: Storage, owner: string) {
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
    const { text, unsent, note, isNote } = { text: '', unsent: [], ...stored[conversationId], ...change }
    const { [conversationId]: _, ...others } = stored
    const isEmpty = text === '' && unsent.length === 0 && !note && !isNote
    stored = isEmpty ? others : { ...others, [conversationId]: { text, unsent, note, isNote } }
    try {
      storage.setItem(key, JSON.stringify({ owner, conversations: stored }))
    } catch {
      // The storage is full. The drafts stay in memory, and a reload loses them.
    }
  }

  return {
    text: (conversationId: string) => stored[conversationId]?.text ?? '',
    unsent: (conversationId: string) => stored[conversationId]?.unsent ?? [],
    conversationsWithUnsent: () => Object.keys(stored).filter((id) => stored[id]!.unsent.length > 0),
    keepText: (conversationId: string, text: string) => store(conversationId, { text }),
    note: (conversationId: string): NoteDraft => stored[conversationId]?.note ?? { body: '' },
    keepNote: (conversationId: string, note: NoteDraft) =>
      store(conversationId, { note: note.body === '' ? undefined : note }),
    isNote: (conversationId: string) => stored[conversationId]?.isNote === true,
    chooseNote: (conversationId: string, isNote: boolean) => store(conversationId, { isNote }),
    keepUnsent: (conversationId: string, unsent: Unsent[]) => store(conversationId, { unsent }),
    /** Returns the number of conversations with a draft or an unsent reply. */
    count: () =>
      Object.values(stored).filter(({ text, unsent, note }) => text !== '' || unsent.length > 0 || note).length,
    /** Deletes all drafts. */
    clear() {
      stored = {}
      storage.removeItem(key)
    },
  }
}
