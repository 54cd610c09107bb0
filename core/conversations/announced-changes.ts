import type { EventDraft } from '../log/event-draft.ts'
import type { EventLog } from '../log/event-log.ts'
import type { LogEvent } from '../log-event.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { Announced, AnnouncedField, Conversation } from './model.ts'

type Scope = string | undefined
type State<Field extends AnnouncedField> = NonNullable<Conversation[Field]>

export interface AnnouncedChanges<Field extends AnnouncedField> {
  /**
   * Changes the field. `next` returns the new state, or undefined if nothing changes. `activeAt`
   * moves the conversation up in the operators' list. Errors: NotFound if the conversation does not
   * exist, and those of `next`.
   */
  change(
    conversationId: string,
    scope: Scope,
    next: (current: State<Field> | undefined) => Omit<State<Field>, keyof Announced> | undefined,
    activeAt?: Date,
  ): Promise<Conversation>
  /**
   * Returns a conversation whose log has the event of the latest change. Errors: NotFound if the
   * conversation does not exist.
   */
  settled(conversationId: string, scope: Scope): Promise<Conversation>
  /** Appends events that are missing because the process that stored the change died. */
  reconcile(): Promise<void>
}

const reconcileBatch = 200

/**
 * Changes a field of conversations and appends an event for each change.
 *
 * The document is updated before the event is appended. If a process dies between the two, the next
 * change first appends the missing event. So the log has each event once and in order.
 */
export function createAnnouncedChanges<Field extends AnnouncedField>(dependencies: {
  field: Field
  eventOf: (state: State<Field>) => Omit<EventDraft, 'conversationId'>
  /** Follows each event. Runs again if the process dies before its end. */
  applied?: (event: LogEvent) => Promise<void>
  store: Pick<ConversationStore, 'change' | 'markAnnounced' | 'unannounced'>
  log: Pick<EventLog, 'append'>
  conversationAccess: Pick<ConversationAccess, 'find'>
}): AnnouncedChanges<Field> {
  const { field, eventOf, applied, store, log, conversationAccess } = dependencies
  const stateOf = (conversation: Conversation) => conversation[field] as State<Field> | undefined

  async function announce(conversationId: string, state: State<Field>) {
    if (state.announced) return
    const { event } = await log.append({ conversationId, ...eventOf(state) })
    await applied?.(event)
    await store.markAnnounced(conversationId, field, state.version)
  }

  async function settled(conversationId: string, scope: Scope) {
    const conversation = await conversationAccess.find(conversationId, scope)
    const current = stateOf(conversation)
    if (current) await announce(conversationId, current)
    return conversation
  }

  return {
    settled,

    async change(conversationId, scope, next, activeAt) {
      for (;;) {
        const conversation = await settled(conversationId, scope)
        const current = stateOf(conversation)
        const changed = next(current)
        if (!changed) return conversation
        const state = { ...changed, version: (current?.version ?? 0) + 1, announced: false } as State<Field>
        if (!(await store.change(conversationId, field, current, state, activeAt))) continue
        await announce(conversationId, state)
        return { ...conversation, [field]: state }
      }
    },

    async reconcile() {
      for (const conversation of await store.unannounced(field, reconcileBatch))
        await announce(conversation.conversationId, stateOf(conversation)!)
    },
  }
}
