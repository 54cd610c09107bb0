import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, ServiceError } from '../errors.ts'
import { field, messageBody, validate } from '../rules.ts'
import type { SavedReplyStore } from './saved-reply-store.ts'

export interface SavedReply {
  shortcut: string
  body: string
}

/** Replies that operators insert with `/shortcut`. They belong to a workspace. */
export interface SavedReplies {
  /** Returns the replies in the order of their shortcuts. Errors: NotFound. */
  list(workspaceId: string): Promise<SavedReply[]>
  /**
   * Saves a reply. Replaces a reply with the same shortcut. Errors: `NotFound`; `ValidationFailed`,
   * also for a new shortcut if the workspace already has 100 replies.
   */
  save(workspaceId: string, reply: SavedReply): Promise<SavedReply>
  /** Deletes a reply. Does nothing if it does not exist. Errors: NotFound. */
  remove(workspaceId: string, shortcut: string): Promise<void>
}

const maxReplies = 100
/** Without `_`, so that no shortcut is the name of a special property. */
const shortcutPattern = /^[a-z0-9-]{1,32}$/

export function createSavedReplies(store: SavedReplyStore, bodyMaxLength: number): SavedReplies {
  async function find(workspaceId: string) {
    const found = await store.find(workspaceId)
    if (!found) throw new ServiceError(ErrorCode.NOT_FOUND)
    return found
  }

  const shortcutIssue = (shortcut: string) =>
    field('/shortcut', shortcut, (value) => (shortcutPattern.test(value) ? undefined : 'pattern'))

  return {
    async list(workspaceId) {
      return Object.entries(await find(workspaceId))
        .map(([shortcut, body]) => ({ shortcut, body }))
        .sort((one, other) => (one.shortcut < other.shortcut ? -1 : 1))
    },

    async save(workspaceId, { shortcut, body }) {
      await find(workspaceId)
      validate(shortcutIssue(shortcut), field('/body', body, messageBody(bodyMaxLength)))
      if (!(await store.set(workspaceId, { shortcut, body }, maxReplies))) throw invalid('/shortcut', 'maxItems')
      return { shortcut, body }
    },

    async remove(workspaceId, shortcut) {
      await find(workspaceId)
      validate(shortcutIssue(shortcut))
      await store.remove(workspaceId, shortcut)
    },
  }
}
