import { type Core, dateOf } from '../core.ts'
import { isAllowedDestination } from '../deliveries/destination-check.ts'
import { hasDocument } from '../mongodb/with-id.ts'
import { updateMember } from '../operators/accounts.ts'
import { consoleSessionsIn } from '../operators/console-sessions.ts'
import { type Member, type Notifications, notificationDetails, operatorLanguages } from '../operators/model.ts'
import { field, integer, issueIf, oneOf, text, validate } from '../rules.ts'
import { endpointUrl, type PushSubscription } from './push.ts'

export const defaultNotifications: Omit<Notifications, 'isOn'> = {
  newConversation: false,
  answerInMine: false,
  waitingMinutes: 0,
  detail: 'nothing',
  mailMinutes: 0,
}

/** Sets what an operator is told while not looking. Errors: `NotFound`, `ValidationFailed`. */
export async function setNotifications(
  core: Core,
  workspaceId: string,
  id: string,
  chosen: Omit<Notifications, 'isOn' | 'detail'> & { detail: string },
) {
  const { detail, waitingMinutes, mailMinutes, newConversation, answerInMine } = chosen
  validate(
    field('/notifications/detail', detail as Notifications['detail'], oneOf(...notificationDetails)),
    field('/notifications/waitingMinutes', waitingMinutes, integer(0, 240)),
    field('/notifications/mailMinutes', mailMinutes, integer(0, 240)),
  )
  const isOn = newConversation || answerInMine || waitingMinutes > 0
  const notifications = { ...chosen, isOn } as Notifications
  await updateMember(core, workspaceId, id, (member) => ({ ...member, notifications }))
}

/**
 * Sets where a session gets pushes; undefined for nowhere. Errors: `ValidationFailed`, `ServiceUnavailable`
 * without a name service.
 */
export async function setPushSubscription(core: Core, sessionId: string, subscription: PushSubscription | undefined) {
  if (!subscription) {
    await core.db.consoleSessions.updateOne({ _id: sessionId }, { $unset: { push: '' } })
    return
  }
  const { endpoint, keys } = subscription
  const isKey = (bytes: number) => (key: string) =>
    /^[\w-]+$/.test(key) && Buffer.from(key, 'base64url').length === bytes ? undefined : 'format'
  validate(field('/p256dh', keys.p256dh, isKey(65)), field('/auth', keys.auth, isKey(16)))
  const url = endpointUrl(endpoint)
  const isAllowed = url !== undefined && (await isAllowedDestination(core, url))
  validate(issueIf(!isAllowed, '/endpoint', 'destination'))
  const push = { sealed: core.secretBox.seal(JSON.stringify(subscription)) }
  await core.db.consoleSessions.updateOne({ _id: sessionId }, { $set: { push } })
}

export const isPushed = ({ db }: Core, sessionId: string) =>
  hasDocument(db.consoleSessions, { _id: sessionId, push: { $exists: true } })

/** A console reports every 15 s. */
const hereMs = 40_000

/** Keeps the language of a console. Empty changes nothing. Errors: `ValidationFailed`. */
export async function keepLanguage(core: Core, workspaceId: string, { id, ...member }: Member, language: string) {
  const known = operatorLanguages.find((each) => each === language)
  validate(issueIf(language !== '' && !known, '/language', 'enum'))
  if (known && known !== member.language)
    await updateMember(core, workspaceId, id, (present) => ({ ...present, language: known }))
}

/** Records whether an operator looks. Returns who else looks at the conversation. Errors: `ValidationFailed`. */
export async function reportAttention(core: Core, sessionId: string, isLooking: boolean, looksAt: string) {
  validate(field('/conversationId', looksAt, text(0, 64)))
  const lookedAt = dateOf(core)
  const change = isLooking ? { $set: { lookedAt, looksAt } } : { $unset: { lookedAt: '' as const } }
  const own = await core.db.consoleSessions.findOneAndUpdate({ _id: sessionId }, change)
  if (!own || looksAt === '') return []
  const others = (await consoleSessionsIn(core, own.workspaceId)).filter(
    (each) =>
      each.operator !== own.operator && each.looksAt === looksAt && +lookedAt - Number(each.lookedAt ?? 0) < hereMs,
  )
  return [...new Set(others.map(({ displayName }) => displayName))]
}
