import { type Core, dateOf } from '../core.ts'
import { invalid, type Scope } from '../errors.ts'
import type { Conversation } from '../log/conversation-model.ts'
import { operationKeys } from '../log-event.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { validate } from '../rules.ts'
import { findConversation } from './conversation-access.ts'
import { tagIssue, tagOf } from './model.ts'
import { changeState, type StateEvents } from './state-events.ts'

const maxTags = 10
const maxListed = 100
/** Number of conversations from which the list is made. */
const listedFrom = 500

export const tagEvents: StateEvents<'tags'> = {
  field: 'tags',
  eventOf({ version, tag, isAdded }) {
    const type = isAdded ? 'conversation.tagged' : 'conversation.untagged'
    return { type, operationKey: operationKeys.tagChange(version), inputHash: type, data: { tag } }
  },
}

/** Does nothing if the conversation has the tag. Errors: NotFound, ValidationFailed (also for an 11th tag). */
export const addTag = (core: Core, conversationId: string, tag: string, scope: Scope): Promise<Conversation> =>
  changeTag(core, conversationId, tag, scope, true)

/** Does nothing if the conversation does not have the tag. Errors: NotFound, ValidationFailed. */
export const removeTag = (core: Core, conversationId: string, tag: string, scope: Scope): Promise<Conversation> =>
  changeTag(core, conversationId, tag, scope, false)

/** Changes one tag, so that operators who tag at the same time cannot undo each other's changes. */
async function changeTag(core: Core, conversationId: string, sent: string, workspaceId: Scope, isAdded: boolean) {
  const conversation = await findConversation(core, conversationId, workspaceId)
  const tag = tagOf(sent)
  validate(tagIssue(tag))
  return changeState(core, tagEvents, conversation, (current) => {
    const names = current?.names ?? []
    if (names.includes(tag) === isAdded) return undefined
    if (isAdded && names.length >= maxTags) throw invalid('/tag', 'maxItems')
    const others = names.filter((name) => name !== tag)
    return { names: isAdded ? [...others, tag] : others, tag, isAdded, at: dateOf(core) }
  })
}

/** Returns the tags that a workspace used last, the most used first. */
export async function listTags(core: Core, workspaceId: string): Promise<string[]> {
  const uses = new Map<string, number>()
  for (const tag of (await latestTags(core, workspaceId, listedFrom)).flat()) uses.set(tag, (uses.get(tag) ?? 0) + 1)
  const sorted = [...uses].sort(([one, ofOne], [other, ofOther]) => ofOther - ofOne || (one < other ? -1 : 1))
  return sorted.slice(0, maxListed).map(([tag]) => tag)
}

/** Returns the tags of the conversations of a workspace whose tags changed last. */
export async function latestTags({ db }: Pick<Core, 'db'>, workspaceId: string, limit: number): Promise<string[][]> {
  const found = db.conversations.find(
    { workspaceId, 'tags.at': { $exists: true }, ...notErasing },
    { projection: { 'tags.names': 1 }, sort: { 'tags.at': -1 }, limit, hint: 'by_tag_change' },
  )
  return (await found.toArray()).flatMap(({ tags }) => (tags ? [tags.names] : []))
}
