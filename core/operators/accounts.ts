import { emailPartsOf } from '../../contract/contacts.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { mailerOf } from '../mail/mailer.ts'
import { withId } from '../mongodb/with-id.ts'
import { field, issueIf, line, validate } from '../rules.ts'
import type { Caller } from '../workspaces/access.ts'
import { workspaceWith } from '../workspaces/workspaces.ts'
import { addLink, consoleSessionsIn, endConsoleSessions, maxListed, notExpired, takeLink } from './console-sessions.ts'
import {
  type ConsoleSession,
  invitationLifetimeMs,
  linkLifetimeMs,
  type Member,
  publicIdOf,
  type Role,
  type SignInLink,
} from './model.ts'
import { removePasskeys } from './passkeys.ts'
import {
  activeOwners,
  changeTeam,
  findMember,
  isActive,
  isLinkUsable,
  listMembers,
  operatorTextsOf,
  requireFreeMail,
  scopesOfRole,
} from './teams.ts'

const maxInvitations = 100
/** A core mails no link to an account with this number of unused ones. Concurrent cores can mail one more each. */
const maxMailedLinks = 3
const newMailLifetimeMs = 86_400_000
/** Maximum number of waiting requests for mailed links. Further ones are dropped. */
const maxWaiting = 1_000

type AccountLink = SignInLink & Required<Pick<SignInLink, 'account'>>

async function requiredMember(core: Core, workspaceId: string, id: string) {
  const member = await findMember(core, workspaceId, id)
  if (!member) throw new ServiceError('NotFound')
  return member
}

function requireScopesOf(caller: Caller, ...roles: (Role | undefined)[]) {
  const needed = roles.flatMap((role) => (role ? scopesOfRole[role] : []))
  if (needed.some((scope) => !caller.scopes.has(scope))) throw new ServiceError('PermissionDenied')
}

/** Replaces an active account. Errors: `NotFound`, `LastOwner` if no owner would be left, those of `next`. */
export async function updateMember(
  core: Core,
  workspaceId: string,
  id: string,
  next: (member: Member) => Member | undefined,
) {
  const members = await changeTeam(core, workspaceId, (present) => {
    const found = present.find((member) => member.id === id && isActive(member))
    if (!found) throw new ServiceError('NotFound')
    const changed = next(found)
    if (changed) requireFreeMail(present, changed)
    const left = present.flatMap((member) => (member === found ? (changed ?? []) : member))
    if (activeOwners(present).length > 0 && activeOwners(left).length === 0) throw new ServiceError('LastOwner')
    return left
  })
  return members.find((member) => member.id === id)
}

/** Returns the links of a workspace that sign in accounts, newest first. */
async function accountLinks(core: Core, workspaceId: string) {
  const open = { workspaceId, account: { $exists: true }, ...notExpired(core) } as const
  const found = await core.db.signInLinks.find(open).sort({ 'account.createdAt': -1 }).limit(maxListed).toArray()
  const members = await listMembers(core, workspaceId)
  return found.map(withId).filter((link) => isLinkUsable(members, link)) as AccountLink[]
}

/** Removes the links of an account, and those that its operator has made. */
async function removeLinksOf({ db }: Core, workspaceId: string, operator: string) {
  await db.signInLinks.deleteMany({ workspaceId, $or: [{ operator }, { 'account.invitedBy': operator }] })
}

async function mailConfirmation(core: Core, workspaceId: string, member: Member, newMail: string) {
  const operator = member.id
  requireFreeMail(await listMembers(core, workspaceId), { id: operator, mail: newMail })
  const isOpen = { workspaceId, operator, newMail: { $exists: true }, ...notExpired(core) }
  const open = await core.db.signInLinks.countDocuments(isOpen)
  validate(issueIf(open >= maxMailedLinks, '/mail', 'maxItems'))
  const expiresAt = dateOf(core, newMailLifetimeMs)
  const { secret } = await addLink(core, { workspaceId, operator, scopes: [], newMail, expiresAt })
  await sendMail(core, workspaceId, newMail, 'confirmation', secret, member)
}

/** Mails a link to each account with the address, in at most five workspaces. */
async function mailLinks(core: Core, mail: string) {
  for (const { workspaceId, members } of await core.db.teams.find({ 'members.mail': mail }).limit(5).toArray()) {
    const member = members.find((each) => isActive(each) && each.mail === mail)
    // The provider decides about sign-ins of its accounts, which have no role.
    if (!member?.role) continue
    const open = await accountLinks(core, workspaceId)
    const mailed = open.filter(({ operator, account }) => operator === member.id && !account.invitedBy)
    if (mailed.length >= maxMailedLinks) continue
    const account = { createdAt: dateOf(core) }
    const expiresAt = dateOf(core, linkLifetimeMs)
    const { secret } = await addLink(core, { workspaceId, operator: member.id, account, scopes: [], expiresAt })
    await sendMail(core, workspaceId, mail, 'signIn', secret, member)
  }
}

/** Errors: `PermissionDenied`, `NotFound` for an unknown account, `ValidationFailed`. */
export async function inviteOperator(
  core: Core,
  caller: Caller,
  { workspaceId, ...given }: { workspaceId: string; role?: Role; mail?: string; operator?: string },
) {
  const known = given.operator ? await requiredMember(core, workspaceId, given.operator) : undefined
  const { role, mail } = known ?? { ...given, mail: mailOf(given.mail) }
  validate(issueIf(!role, '/role', 'required'))
  requireScopesOf(caller, role)
  const operator = known?.id ?? newId('op')
  if (!known) requireFreeMail(await listMembers(core, workspaceId), { id: operator, mail })
  const open = await accountLinks(core, workspaceId)
  validate(issueIf(open.length >= maxInvitations, '/invitations', 'maxItems'))
  const { secret, link } = await addLink(core, {
    workspaceId,
    operator,
    account: { createdAt: dateOf(core), invitedBy: caller.subject, mail, role: given.role },
    tokenId: caller.consoleSession?.account ? undefined : caller.tokenId,
    scopes: [],
    expiresAt: dateOf(core, invitationLifetimeMs),
  })
  const mailed = mailerOf(core).isEnabled && mail !== undefined
  if (mailed) {
    // A new colleague has no language yet.
    const reader = known ?? (await findMember(core, workspaceId, caller.subject))
    await sendMail(core, workspaceId, mail, 'invitation', secret, reader)
  }
  return { secret, link, mailed }
}

/** Returns the open invitations of a workspace, newest first. */
export const listInvitations = async (core: Core, workspaceId: string): Promise<SignInLink[]> =>
  (await accountLinks(core, workspaceId)).filter(({ account }) => account.invitedBy !== undefined)

export async function revokeInvitation(core: Core, workspaceId: string, publicId: string) {
  const open = await accountLinks(core, workspaceId)
  const ids = open.filter((link) => publicIdOf(link) === publicId).map(({ id }) => id)
  await core.db.signInLinks.deleteMany({ workspaceId, _id: { $in: ids } })
}

/** Errors: `NotFound`, `LastOwner`, `PermissionDenied`, `ValidationFailed` for an account of the provider. */
export async function setOperatorRole(
  core: Core,
  caller: Caller,
  workspaceId: string,
  id: string,
  role: Role,
): Promise<Member> {
  const member = await updateMember(core, workspaceId, id, (found) => {
    validate(issueIf(!found.role, '/role', 'const'))
    requireScopesOf(caller, found.role, role)
    return { ...found, role }
  })
  await removeLinksOf(core, workspaceId, id)
  return member!
}

/** Removes an account and everything with which its operator signs in. Errors: those of `setOperatorRole`. */
export async function removeOperator(core: Core, caller: Caller, workspaceId: string, id: string) {
  await updateMember(core, workspaceId, id, ({ role, name, joinedAt }) => {
    requireScopesOf(caller, role)
    // The provider decides about its accounts. They come back with the next sign-in.
    return role && { id, name, role, joinedAt, state: 'removed' }
  })
  await removeLinksOf(core, workspaceId, id)
  await removePasskeys(core, workspaceId, id)
  await endConsoleSessions(core, ...(await consoleSessionsIn(core, workspaceId, id)))
}

/**
 * If mail is configured, a new address counts after its mailed link was used, because links that sign in go
 * to the address. Errors: `NotFound`, `ValidationFailed`.
 */
export async function updateOwnAccount(
  core: Core,
  workspaceId: string,
  id: string,
  { name, mail }: { name?: string; mail?: string },
) {
  validate(field('/name', name?.trim(), line(1, 128)))
  const changed = mailOf(mail)
  const present = await requiredMember(core, workspaceId, id)
  const isConfirmed = !mailerOf(core).isEnabled || changed === undefined || changed === present.mail
  if (!isConfirmed) await mailConfirmation(core, workspaceId, present, changed)
  const member = await updateMember(core, workspaceId, id, (found) => ({
    ...found,
    name: name?.trim() ?? found.name,
    mail: mail === undefined || !isConfirmed ? found.mail : changed,
  }))
  return { member: member!, confirmationMailed: !isConfirmed }
}

/** Sets the address of a mailed link. Errors: `NotFound`, `ValidationFailed`. */
export async function confirmMail(core: Core, workspaceId: string, id: string, secret: string): Promise<Member> {
  const taken = await takeLink(core, secret, { workspaceId, operator: id, newMail: { $exists: true } })
  validate(issueIf(!taken, '/secret', 'const'))
  return (await updateMember(core, workspaceId, id, (member) => ({ ...member, mail: taken!.newMail! })))!
}

/** Ends a session on all cores. Errors: `PermissionDenied` if the caller lacks one of its scopes. */
export async function endSessionOf(
  core: Core,
  caller: Caller,
  workspaceId: string,
  publicId: string,
  operator?: string,
) {
  const open = await consoleSessionsIn(core, workspaceId, operator)
  const found = open.filter((session) => publicIdOf(session) === publicId)
  const mayEnd = ({ operator, scopes }: ConsoleSession) =>
    operator === caller.subject || scopes.every((scope) => caller.scopes.has(scope))
  if (!found.every(mayEnd)) throw new ServiceError('PermissionDenied')
  await endConsoleSessions(core, ...found)
}

const linkMailsOf = perCore(() => ({ last: Promise.resolve(), waiting: 0 }))

/** The answer and its time do not depend on whether an account has the address. Errors: `NotFound`. */
export function mailSignInLink(core: Core, text: string) {
  if (!mailerOf(core).isEnabled) throw new ServiceError('NotFound')
  const mail = addressIn(text)
  const mails = linkMailsOf(core)
  if (mail === undefined || mails.waiting >= maxWaiting) return
  mails.waiting += 1
  // One after another, so that requests which come to a core at once do not get more links than allowed.
  mails.last = mails.last
    .then(() => mailLinks(core, mail))
    .catch(logFailure(core.logger, 'a sign-in link was not mailed'))
    .finally(() => {
      mails.waiting -= 1
    })
}

/** Mails a link in the language of an account. The name of the workspace is empty if it is being deleted. */
async function sendMail(
  core: Core,
  workspaceId: string,
  to: string,
  kind: 'invitation' | 'signIn' | 'confirmation',
  secret: string,
  account?: Member,
) {
  const workspace = await workspaceWith(core, workspaceId)
  const { name = '' } = account ?? {}
  const values: Record<string, string> = { name, site: workspace?.name ?? '', url: core.config.PUBLIC_URL, secret }
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]!)
  const texts = operatorTextsOf(account)
  mailerOf(core).sendLater({ to, subject: fill(texts[kind]), text: fill(texts[`${kind}Text`]) })
}

/** Returns an address in lower case. The lower case of a whole word can end with ς instead of σ, which is another address. */
const addressIn = (text: string) => emailPartsOf(text)?.address.replace(/./gu, (sign) => sign.toLowerCase())

/** Returns an address as it is stored. Errors: `ValidationFailed`. */
function mailOf(text: string | undefined) {
  if (text === undefined || text === '') return undefined
  const mail = addressIn(text)
  validate(mail === undefined ? { path: '/mail', rule: 'format' } : field('/mail', mail, line(3, 254)))
  return mail
}
