import type { SavedReply as SavedReplyOfProto } from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import type { Core } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { field, messageBody, validate } from '../rules.ts'

/** A text that operators insert with `/shortcut`. It is stored in the document of its workspace. */
type SavedReply = ProtoFields<SavedReplyOfProto>

const maxReplies = 100

/** Returns the replies in the order of their shortcuts. Errors: NotFound. */
export async function listSavedReplies({ db }: Core, workspaceId: string): Promise<SavedReply[]> {
  const found = await db.workspaces.findOne(existing(workspaceId), { projection: { savedReplies: 1 } })
  if (!found) throw new ServiceError('NotFound')
  return Object.entries(found.savedReplies ?? {})
    .map(([shortcut, body]) => ({ shortcut, body }))
    .sort((one, other) => (one.shortcut < other.shortcut ? -1 : 1))
}

/** Replaces a reply of the same shortcut. Errors: `NotFound`; `ValidationFailed`, also for the 101st reply. */
export async function saveReply(core: Core, workspaceId: string, reply: SavedReply): Promise<SavedReply> {
  const { shortcut, body } = reply
  await listSavedReplies(core, workspaceId)
  validate(shortcutIssue(shortcut), field('/body', body, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)))
  const name = `savedReplies.${shortcut}`
  const others = { $size: { $objectToArray: { $ifNull: ['$savedReplies', {}] } } }
  const hasPlace = { $or: [{ [name]: { $exists: true } }, { $expr: { $lt: [others, maxReplies] } }] }
  const filter = { ...existing(workspaceId), ...hasPlace }
  const { matchedCount } = await core.db.workspaces.updateOne(filter, { $set: { [name]: body } })
  if (matchedCount === 0) throw invalid('/shortcut', 'maxItems')
  return reply
}

/** Does nothing if the reply does not exist. Errors: NotFound for the workspace. */
export async function deleteSavedReply(core: Core, workspaceId: string, shortcut: string) {
  await listSavedReplies(core, workspaceId)
  validate(shortcutIssue(shortcut))
  await core.db.workspaces.updateOne(existing(workspaceId), { $unset: { [`savedReplies.${shortcut}`]: '' } })
}

const existing = (workspaceId: string) => ({ _id: workspaceId, ...notDeleted })

/** Excludes `_`, so that no shortcut is the name of a special property. */
const shortcutIssue = (shortcut: string) =>
  field('/shortcut', shortcut, (value) => (/^[a-z0-9-]{1,32}$/.test(value) ? undefined : 'pattern'))
