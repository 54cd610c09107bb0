import { availabilityOf } from '../availability/availability.ts'
import { createJobs } from '../concurrency/job.ts'
import { summarizeConversations } from '../conversations/conversation-access.ts'
import { type Core, dateOf } from '../core.ts'
import type { Conversation } from '../log/conversation-model.ts'
import { findConversations } from '../log/conversation-store.ts'
import { isEntry } from '../log-event.ts'
import { mailerOf } from '../mail/mailer.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { consoleSessionsIn } from '../operators/console-sessions.ts'
import type { ConsoleSession, Member, Notifications } from '../operators/model.ts'
import { isActive, operatorTextsOf, scopesOfRole } from '../operators/teams.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { isOpenAt } from '../workspaces/opening-hours.ts'
import { findWorkspace, siteDirectoryOf } from '../workspaces/workspaces.ts'
import { type PushSubscription, sendPush } from './push.ts'

/** Time for a bot to answer before operators are told. */
const afterMessageMs = 1_500
/** An operator counts as looking for this time after a report of the console. */
const lookingMs = 90_000
/** What was not told within this time after it was due is not told any more. */
const windowMs = 3_600_000
const maxConversations = 500
const maxTold = 400
const maxTextLength = 160
const minuteMs = 60_000

export function operatorNoticeJobs(core: Core) {
  core.bus.on('appended', (event) => {
    if (isEntry(event) && event.waitingSince) core.bus.emit('due', 'tell operators', afterMessageMs)
  })
  return createJobs(core, { 'tell operators': [20_000, () => tellOperators(core)] })
}

/** A push service that does not answer is asked once in a run. */
type Failing = Set<string>

/**
 * Tells operators who do not look at the console that visitors wait (contract, rule 43). One write claims
 * each notice before it is sent, so no core sends it again.
 */
export async function tellOperators(core: Core) {
  const failing: Failing = new Set()
  const teams = core.db.teams.find({ 'members.notifications.isOn': true }, { hint: 'by_notifications' })
  for await (const { workspaceId, members } of teams) {
    const watchers = await absentOf(core, workspaceId, members)
    if (watchers.length > 0) await tellTeam(core, workspaceId, watchers, failing)
  }
}

interface Watcher {
  member: Member
  notifications: Notifications
  sessions: ConsoleSession[]
}

/** Returns the operators who want to be told, are signed in and do not look at the console. */
async function absentOf(core: Core, workspaceId: string, members: Member[]): Promise<Watcher[]> {
  const now = dateOf(core)
  const all = await consoleSessionsIn(core, workspaceId)
  return members.flatMap((member) => {
    const { notifications, role } = member
    if (!isActive(member) || !notifications?.isOn) return []
    const mayRead = ({ account, operator, scopes }: ConsoleSession) =>
      account && operator === member.id && (role ? scopesOfRole[role] : scopes).includes('messages:read')
    const sessions = all.filter(mayRead)
    const looks = sessions.some(({ lookedAt }) => lookedAt && now.getTime() - lookedAt.getTime() < lookingMs)
    return sessions.length === 0 || looks ? [] : [{ member, notifications, sessions }]
  })
}

async function tellTeam(core: Core, workspaceId: string, watchers: Watcher[], failing: Failing) {
  const longest = Math.max(
    ...watchers.map(({ notifications: { waitingMinutes, mailMinutes } }) => waitingMinutes + mailMinutes),
  )
  const since = new Date(core.now() - windowMs - longest * minuteMs)
  const found = await core.db.conversations
    .find(
      { workspaceId, 'queue.waitingSince': { $gte: since }, ...notErasing },
      { projection: { assignment: 1, queue: 1, told: 1 }, hint: 'by_waiting' },
    )
    .sort({ 'queue.waitingSince': -1 })
    .limit(maxConversations)
    .toArray()
  for (const { _id, assignment, queue, told = [] } of found) {
    const waiting: Waiting = { id: _id, assignment, since: queue!.waitingSince!.getTime(), workspaceId }
    const due = watchers.flatMap((watcher) =>
      noticesOf(waiting, watcher.notifications, watcher.member.id, core.now())
        .filter(({ key }) => !told.includes(key))
        .map((notice) => ({ ...notice, watcher })),
    )
    if (due.length === 0 || !(await isOpen(core, _id))) continue
    for (const notice of due) await tell(core, waiting, notice, failing)
  }
}

interface Waiting extends Pick<Conversation, 'assignment' | 'workspaceId'> {
  id: string
  since: number
}

type Reason = 'new' | 'answer' | 'waits'
interface Notice {
  by: 'push' | 'mail'
  reason: Reason
  key: string
}

function noticesOf({ assignment, since }: Waiting, chosen: Notifications, id: string, now: number): Notice[] {
  const isDue = (minutes: number) => {
    const lateMs = now - since - minutes * minuteMs
    return lateMs >= 0 && lateMs < windowMs
  }
  const isTaken = assignment?.agent !== undefined
  const wanted: [Reason, boolean, number][] = [
    ['new', chosen.newConversation && !isTaken, 0],
    ['answer', chosen.answerInMine && isTaken && assignment.operator === id, 0],
    ['waits', chosen.waitingMinutes > 0, chosen.waitingMinutes],
  ]
  const reasons = wanted.filter(([, isWanted]) => isWanted)
  const notice = (by: Notice['by'], reason: Reason, name: string) => ({ by, reason, key: `${since} ${id} ${name}` })
  // One mail, for the reason that comes first.
  const mailed = reasons.find(([, , minutes]) => chosen.mailMinutes > 0 && isDue(minutes + chosen.mailMinutes))
  return [
    ...reasons.filter(([, , minutes]) => isDue(minutes)).map(([reason]) => notice('push', reason, reason)),
    ...(mailed ? [notice('mail', mailed[0], 'mail')] : []),
  ]
}

/** Only the hours of its websites count, not the presence of operators. */
async function isOpen(core: Core, conversationId: string) {
  const keys = await sessionStoreOf(core).sitesOf(conversationId)
  const sites = await Promise.all(keys.map((key) => siteDirectoryOf(core).installations.get(key)))
  const isOpenSite = (site: (typeof sites)[number]) => {
    if (!site?.availability) return true
    const availability = availabilityOf(site)
    return availability.mode === 'auto' ? isOpenAt(availability, core.now()) : availability.mode === 'online'
  }
  return sites.length === 0 || sites.some(isOpenSite)
}

async function tell(core: Core, waiting: Waiting, notice: Notice & { watcher: Watcher }, failing: Failing) {
  const mailer = mailerOf(core)
  const { by, reason, key } = notice
  const { member, notifications, sessions } = notice.watcher
  const subscriptions = sessions.flatMap(({ id, push }) => {
    if (!push) return []
    const subscription: PushSubscription = JSON.parse(core.secretBox.open(push.sealed))
    return failing.has(new URL(subscription.endpoint).origin) ? [] : [{ sessionId: id, subscription }]
  })
  if (by === 'push' ? subscriptions.length === 0 : !mailer.isEnabled || !member.mail) return
  const text = await textOf(core, waiting, notifications.detail, member)
  if (text === undefined || !(await claim(core, waiting, key))) return
  const path = `/console/conversations/${waiting.id}`
  const { [reason]: title, choice } = operatorTextsOf(member)
  if (by === 'mail') {
    const name = (await findWorkspace(core, waiting.workspaceId)).name
    const lines = [`${title}.`, text, `${core.config.PUBLIC_URL}${path}`, choice]
    mailer.sendLater({
      to: member.mail!,
      subject: `${title} · ${name}`,
      text: `${lines.filter(Boolean).join('\n\n')}\n`,
    })
    return
  }
  const payload = { title, body: text, path, tag: waiting.id }
  const outcomes = await Promise.all(
    subscriptions.map(async ({ sessionId, subscription }) => {
      const outcome = await sendPush(core, subscription, payload)
      if (outcome === 'failed') failing.add(new URL(subscription.endpoint).origin)
      if (outcome === 'gone') await core.db.consoleSessions.updateOne({ _id: sessionId }, { $unset: { push: '' } })
      return outcome
    }),
  )
  // The next run tries again, as long as nobody was told.
  if (outcomes.every((outcome) => outcome === 'failed'))
    await core.db.conversations.updateOne({ _id: waiting.id }, { $pull: { told: key } })
}

/** Returns true for one core, if the visitor still waits. */
async function claim({ db }: Core, { id, since }: Waiting, key: string) {
  const still = { _id: id, 'queue.waitingSince': new Date(since), told: { $ne: key }, ...notErasing }
  const { modifiedCount } = await db.conversations.updateOne(still, {
    $push: { told: { $each: [key], $slice: -maxTold } },
  })
  return modifiedCount === 1
}

/** Returns what the operator has chosen to see; undefined if the conversation is gone. */
async function textOf(core: Core, { id }: Waiting, detail: Notifications['detail'], member: Member) {
  if (detail === 'nothing') return ''
  const [conversation] = await findConversations(core, [id])
  if (!conversation) return undefined
  const contacts = !member.role || scopesOfRole[member.role].includes('leads:read')
  const [{ visitor, contact, lastMessage } = {}] = await summarizeConversations(core, [conversation], { contacts })
  const name =
    visitor?.displayName ??
    visitor?.externalSubject ??
    contact?.name ??
    contact?.email ??
    operatorTextsOf(member).visitor
  const { author, body = '', redactedAt } = lastMessage?.message ?? {}
  const shown = detail === 'text' && author?.kind === 'visitor' && !redactedAt ? [...body] : []
  if (shown.length === 0) return name
  return `${name}: ${shown.slice(0, maxTextLength).join('')}${shown.length > maxTextLength ? '…' : ''}`
}
