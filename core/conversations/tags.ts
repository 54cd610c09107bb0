import { invalid } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { validate } from '../rules.ts'
import { createAnnouncedChanges } from './announced-changes.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { ConversationStore } from './conversation-store.ts'
import { type Conversation, tagIssue, tagOf } from './model.ts'
import type { TagStore } from './tag-store.ts'

type Scope = string | undefined

export interface ConversationTags {
  /**
   * Adds a tag. Does nothing if the conversation has it. Errors: NotFound if the conversation does not
   * exist, ValidationFailed, also if it has 10 tags.
   */
  add(conversationId: string, tag: string, scope: Scope): Promise<Conversation>
  /**
   * Removes a tag. Does nothing if the conversation does not have it. Errors: NotFound if the
   * conversation does not exist, ValidationFailed.
   */
  remove(conversationId: string, tag: string, scope: Scope): Promise<Conversation>
  /** Returns the tags that a workspace used last, the most used first. */
  list(workspaceId: string): Promise<string[]>
  /** Appends events that are missing because the process that stored a tag died. */
  reconcile(): Promise<void>
}

const maxTags = 10
const maxListed = 100
/** Number of conversations from which the list is made. */
const listedFrom = 500

/**
 * Tags of conversations. A call changes one tag, so operators who tag at the same time cannot undo each
 * other's changes.
 */
export function createTags(dependencies: {
  store: Pick<ConversationStore, 'change' | 'markAnnounced' | 'unannounced' | 'recordStatus'>
  tagStore: TagStore
  log: Pick<EventLog, 'append'>
  conversationAccess: Pick<ConversationAccess, 'find'>
  now: () => number
}): ConversationTags {
  const { store, tagStore, log, conversationAccess, now } = dependencies

  const changes = createAnnouncedChanges({
    field: 'tags',
    eventOf({ version, tag, isAdded }) {
      const type = isAdded ? 'conversation.tagged' : 'conversation.untagged'
      return { type, operationKey: operationKeys.tagChange(version), inputHash: type, data: { tag } }
    },
    store,
    log,
    conversationAccess,
  })

  async function change(conversationId: string, sent: string, isAdded: boolean, scope: Scope) {
    await conversationAccess.find(conversationId, scope)
    const tag = tagOf(sent)
    validate(tagIssue(tag))
    return changes.change(conversationId, scope, (current) => {
      const names = current?.names ?? []
      if (names.includes(tag) === isAdded) return undefined
      if (isAdded && names.length >= maxTags) throw invalid('/tag', 'maxItems')
      const others = names.filter((name) => name !== tag)
      return { names: isAdded ? [...others, tag] : others, tag, isAdded, at: new Date(now()) }
    })
  }

  return {
    add: (conversationId, tag, scope) => change(conversationId, tag, true, scope),
    remove: (conversationId, tag, scope) => change(conversationId, tag, false, scope),

    async list(workspaceId) {
      const uses = new Map<string, number>()
      for (const tag of (await tagStore.latest(workspaceId, listedFrom)).flat()) uses.set(tag, (uses.get(tag) ?? 0) + 1)
      const sorted = [...uses].sort(([one, ofOne], [other, ofOther]) => ofOther - ofOne || (one < other ? -1 : 1))
      return sorted.slice(0, maxListed).map(([tag]) => tag)
    },

    reconcile: changes.reconcile,
  }
}
