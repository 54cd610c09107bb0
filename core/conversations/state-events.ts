import type { Core } from '../core.ts'
import type { Announced, AnnouncedField, Conversation } from '../log/conversation-model.ts'
import { conversationOf, withoutNotes } from '../log/conversation-store.ts'
import { type EventDraft, logOf } from '../log/event-log.ts'
import type { LogEvent } from '../log-event.ts'
import { findConversation } from './conversation-access.ts'

type State<Field extends AnnouncedField> = NonNullable<Conversation[Field]>

/**
 * A field of conversations with an event for each change. The document is updated before the event is
 * appended. If a process dies between the two, the next change first appends the missing event. So the log
 * has each event once and in order.
 */
export interface StateEvents<Field extends AnnouncedField> {
  field: Field
  eventOf: (state: State<Field>) => Omit<EventDraft, 'conversationId'>
  /** Follows each event. Runs again if the process dies before its end. */
  applied?: (core: Core, event: LogEvent) => Promise<void>
}

const reconcileBatch = 200

/**
 * Changes the field of a conversation that was just read. `next` returns the new state, or undefined if
 * nothing changes. `activeAt` moves the conversation up in the operators' list. Errors: NotFound, and
 * those of `next`.
 */
export async function changeState<Field extends AnnouncedField>(
  core: Core,
  events: StateEvents<Field>,
  conversation: Conversation,
  next: (current: State<Field> | undefined) => Omit<State<Field>, keyof Announced> | undefined,
  activeAt?: Date,
): Promise<Conversation> {
  const { field } = events
  const { conversationId, workspaceId } = conversation
  for (let latest = conversation; ; latest = await findConversation(core, conversationId, workspaceId)) {
    await announceState(core, events, latest)
    const current = latest[field] as State<Field> | undefined
    const changed = next(current)
    if (!changed) return latest
    const version = (current?.version ?? 0) + 1
    const state = { ...changed, version, announced: false } as State<Field>
    const asRead = current ? { [`${field}.version`]: current.version } : { [field]: { $exists: false } }
    const { modifiedCount } = await core.db.conversations.updateOne(
      { _id: conversationId, ...asRead },
      { $set: { [field]: state }, ...(activeAt && { $max: { lastMessageAt: activeAt } }) },
    )
    if (modifiedCount === 0) continue
    const written = { ...latest, [field]: state }
    await announceState(core, events, written)
    return written
  }
}

/** Appends the event of the latest change, if the log lacks it. The conversation was just read. */
export async function announceState<Field extends AnnouncedField>(
  core: Core,
  { field, eventOf, applied }: StateEvents<Field>,
  conversation: Conversation,
) {
  const state = conversation[field] as State<Field> | undefined
  const { conversationId } = conversation
  if (!state || state.announced) return
  const { event } = await logOf(core).append({ conversationId, ...eventOf(state) })
  await applied?.(core, event)
  await core.db.conversations.updateOne(
    { _id: conversationId, [`${field}.version`]: state.version },
    { $set: { [`${field}.announced`]: true } },
  )
}

/** Appends events that are missing because a process died. */
export async function reconcileStates<Field extends AnnouncedField>(core: Core, events: StateEvents<Field>) {
  const options = { ...withoutNotes, limit: reconcileBatch }
  const found = core.db.conversations.find({ [`${events.field}.announced`]: false }, options)
  for (const document of await found.toArray()) await announceState(core, events, conversationOf(core, document))
}
