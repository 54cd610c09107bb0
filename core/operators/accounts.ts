import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { emailPartsOf } from '../../contract/contacts.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Mailer } from '../mail/mailer.ts'
import { field, line, validate } from '../rules.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { Caller } from '../workspaces/access.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import {
  invitationLifetimeMs,
  linkLifetimeMs,
  type Member,
  publicIdOf,
  type Role,
  type SignInLink,
  secretId,
} from './model.ts'
import { scopesOfRole } from './roles.ts'
import type { TeamStore } from './team-store.ts'
import { activeOwners, isActive, requireFreeMail, type Teams } from './teams.ts'

const maxInvitations = 100
/** Unused mailed links of one account. Further requests send no mail until one expires. */
const maxMailedLinks = 3
const newMailLifetimeMs = 86_400_000
/** Requests for mailed links that wait. Further ones are dropped. */
const maxWaiting = 1_000

/** Manages the accounts of workspaces: invitations, roles, removals and sessions. */
export function createAccounts({
  teams,
  teamStore,
  sessionStore,
  mailer,
  wakeups,
  publicUrl,
  nameOfWorkspace,
  logger,
  now,
}: {
  teams: Teams
  teamStore: Pick<TeamStore, 'removePasskeys' | 'withMail'>
  sessionStore: ConsoleSessionStore
  mailer: Mailer
  wakeups: Pick<Wakeups, 'stateChanged'>
  /** Origin of the console. Mailed links begin with it. */
  publicUrl: string
  nameOfWorkspace: (workspaceId: string) => Promise<string>
  logger: Logger
  now: () => number
}) {
  let mailing = Promise.resolve()
  let waiting = 0
  const at = (ms = 0) => new Date(now() + ms)
  const linkOf = (secret: string) => `${publicUrl}/console/#sign-in=${secret}`

  async function required(workspaceId: string, id: string): Promise<Member> {
    const member = await teams.find(workspaceId, id)
    if (!member) throw new ServiceError(ErrorCode.NOT_FOUND)
    return member
  }

  /** Throws `PermissionDenied` if one of the roles has a scope that the caller lacks. */
  function requireScopesOf(caller: Caller, ...roles: (Role | undefined)[]): void {
    const needed = roles.flatMap((role) => (role ? scopesOfRole[role] : []))
    if (needed.some((scope) => !caller.scopes.has(scope))) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
  }

  /** Replaces an active account. Errors: `NotFound`, `LastOwner` if no owner would be left, those of `next`. */
  async function update(workspaceId: string, id: string, next: (member: Member) => Member | undefined) {
    const members = await teams.change(workspaceId, (present) => {
      const found = present.find((member) => member.id === id && isActive(member))
      if (!found) throw new ServiceError(ErrorCode.NOT_FOUND)
      const changed = next(found)
      if (changed) requireFreeMail(present, changed)
      const after = present.flatMap((member) => (member === found ? (changed ?? []) : member))
      if (activeOwners(present).length > 0 && activeOwners(after).length === 0)
        throw new ServiceError(ErrorCode.LAST_OWNER)
      return after
    })
    return members.find((member) => member.id === id)
  }

  const newLink = (link: Omit<SignInLink, 'id' | 'scopes' | 'expiresAt'>, lifetimeMs: number) =>
    sessionStore.addLink({ ...link, scopes: [], expiresAt: at(lifetimeMs) })

  async function endSessionsOf(workspaceId: string, operator: string): Promise<void> {
    const ids = (await sessionStore.sessionsIn(workspaceId, at(), operator)).map(({ id }) => id)
    await sessionStore.removeSessions(ids)
    await wakeups.stateChanged(...ids)
  }

  async function mailConfirmation(workspaceId: string, member: Member, newMail: string) {
    requireFreeMail(await teams.list(workspaceId), { id: member.id, mail: newMail })
    const open = await sessionStore.newMailLinks(workspaceId, member.id, at())
    validate(open >= maxMailedLinks ? { path: '/mail', rule: 'maxItems' } : undefined)
    const link = { workspaceId, operator: member.id, scopes: [], newMail, expiresAt: at(newMailLifetimeMs) }
    const { secret } = await sessionStore.addLink(link)
    const name = await nameOfWorkspace(workspaceId)
    mailer.sendLater({
      to: newMail,
      subject: `Confirm your mail address for ${name}`,
      text: `Hello ${member.name},\n\nthis link makes this the mail address of your account in the console of ${name}. It works once, within a day, in a browser in which you are signed in:\n\n${publicUrl}/console/#confirm-mail=${secret}\n\nIf you did not ask for it, ignore this mail.\n`,
    })
  }

  /** Mails a link to each account with the address. Runs behind the answer to the request. */
  async function mailLinks(mail: string): Promise<void> {
    for (const { workspaceId, members } of await teamStore.withMail(mail)) {
      const member = members.find((each) => isActive(each) && each.mail === mail)
      // The provider decides about sign-ins of its accounts, which have no role.
      if (!member?.role) continue
      const open = await sessionStore.accountLinks(workspaceId, at())
      const mailed = open.filter(({ operator, account }) => operator === member.id && !account.invitedBy)
      if (mailed.length >= maxMailedLinks) continue
      const link = { workspaceId, operator: member.id, account: { createdAt: at() } }
      const { secret } = await newLink(link, linkLifetimeMs)
      const name = await nameOfWorkspace(workspaceId)
      mailer.sendLater({
        to: mail,
        subject: `Sign in to ${name}`,
        text: `Hello ${member.name},\n\nthis link signs you in to the console of ${name}. It works once, within ten minutes:\n\n${linkOf(secret)}\n\nIf you did not ask for it, ignore this mail.\n`,
      })
    }
  }

  return {
    list: teams.list,

    /** Errors: `PermissionDenied`, `NotFound` for an unknown account, `ValidationFailed`. */
    async invite(
      caller: Caller,
      { workspaceId, ...given }: { workspaceId: string; role?: Role; mail?: string; operator?: string },
    ) {
      const known = given.operator === undefined ? undefined : await required(workspaceId, given.operator)
      const role = known ? known.role : given.role
      const mail = known ? known.mail : mailOf(given.mail)
      validate(role ? undefined : { path: '/role', rule: 'required' })
      requireScopesOf(caller, role)
      const operator = known?.id ?? newId('op')
      if (!known) requireFreeMail(await teams.list(workspaceId), { id: operator, mail })
      const open = await sessionStore.accountLinks(workspaceId, at())
      validate(open.length >= maxInvitations ? { path: '/invitations', rule: 'maxItems' } : undefined)
      const account = {
        createdAt: at(),
        invitedBy: caller.subject,
        ...(mail && { mail }),
        ...(!known && { role }),
      }
      const { secret, link } = await newLink(
        { workspaceId, operator, account, tokenId: caller.tokenId },
        invitationLifetimeMs,
      )
      const mailed = mailer.isEnabled && mail !== undefined
      const name = await nameOfWorkspace(workspaceId)
      if (mailed)
        mailer.sendLater({
          to: mail,
          subject: `Your invitation to ${name}`,
          text: `Hello,\n\nthis link opens the console of ${name} for you. It works once, within seven days:\n\n${linkOf(secret)}\n`,
        })
      return { secret, link, mailed }
    },

    /** Returns the open invitations of a workspace, newest first. */
    async invitations(workspaceId: string) {
      const open = await sessionStore.accountLinks(workspaceId, at())
      return open.filter(({ account }) => account.invitedBy !== undefined)
    },

    async revokeInvitation(workspaceId: string, publicId: string): Promise<void> {
      const open = await sessionStore.accountLinks(workspaceId, at())
      const ids = open.filter((link) => publicIdOf(link) === publicId).map(({ id }) => id)
      await sessionStore.removeLinks(workspaceId, ids)
    },

    /** Errors: `NotFound`, `LastOwner`, `PermissionDenied`, `ValidationFailed` for an account of the provider. */
    async setRole(caller: Caller, workspaceId: string, id: string, role: Role) {
      const member = await update(workspaceId, id, (found) => {
        validate(found.role ? undefined : { path: '/role', rule: 'const' })
        requireScopesOf(caller, found.role, role)
        return { ...found, role }
      })
      await sessionStore.removeLinksOf(workspaceId, id)
      return member!
    },

    /** Removes an account and everything with which its operator signs in. Errors: those of `setRole`. */
    async remove(caller: Caller, workspaceId: string, id: string): Promise<void> {
      await update(workspaceId, id, ({ role, name, joinedAt }) => {
        requireScopesOf(caller, role)
        // The provider decides about its accounts. They come back with the next sign-in.
        return role && { id, name, role, joinedAt, state: 'removed' }
      })
      await sessionStore.removeLinksOf(workspaceId, id)
      await teamStore.removePasskeys(workspaceId, id)
      await endSessionsOf(workspaceId, id)
    },

    /**
     * A new address is mailed a link first, where mail is configured, because links that sign in go to
     * the address. Errors: `NotFound`, `ValidationFailed`.
     */
    async updateOwn(workspaceId: string, id: string, { name, mail }: { name?: string; mail?: string }) {
      validate(field('/name', name?.trim(), line(1, 128)))
      const changed = mail === '' ? undefined : mailOf(mail)
      const present = await required(workspaceId, id)
      const isConfirmed = !mailer.isEnabled || changed === undefined || changed === present.mail
      if (!isConfirmed) await mailConfirmation(workspaceId, present, changed)
      const member = await update(workspaceId, id, ({ mail: before, ...found }) => {
        const next = mail === undefined || !isConfirmed ? before : changed
        return { ...found, ...(name !== undefined && { name: name.trim() }), ...(next && { mail: next }) }
      })
      return { member: member!, confirmationMailed: !isConfirmed }
    },

    /** Sets the address of a mailed link. Errors: `NotFound`, `ValidationFailed`. */
    async confirmMail(workspaceId: string, id: string, secret: string) {
      const found = await sessionStore.findLink(secretId(secret), at())
      const isOwn = found?.newMail !== undefined && found.operator === id && found.workspaceId === workspaceId
      const taken = isOwn ? await sessionStore.takeLink(found.id, at()) : undefined
      validate(taken ? undefined : { path: '/secret', rule: 'const' })
      return (await update(workspaceId, id, (member) => ({ ...member, mail: taken!.newMail! })))!
    },

    /** Returns the open sessions of a workspace, newest first; of one operator if it is given. */
    sessions: (workspaceId: string, operator?: string) => sessionStore.sessionsIn(workspaceId, at(), operator),

    /** Ends a session on all cores. Errors: `PermissionDenied` if the caller lacks one of its scopes. */
    async endSession(caller: Caller, workspaceId: string, publicId: string, operator?: string): Promise<void> {
      const open = await sessionStore.sessionsIn(workspaceId, at(), operator)
      const found = open.filter((session) => publicIdOf(session) === publicId)
      for (const { operator, scopes } of found)
        if (operator !== caller.subject && scopes.some((scope) => !caller.scopes.has(scope)))
          throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const ids = found.map(({ id }) => id)
      await sessionStore.removeSessions(ids)
      await wakeups.stateChanged(...ids)
    },

    mailsLinks: mailer.isEnabled,

    /** The answer and its time do not depend on whether an account has the address. Errors: `NotFound`. */
    mailSignInLink(text: string): void {
      if (!mailer.isEnabled) throw new ServiceError(ErrorCode.NOT_FOUND)
      const parts = emailPartsOf(text)
      if (!parts || waiting >= maxWaiting) return
      waiting += 1
      // One after another, so that concurrent requests for an account get no more links than allowed.
      mailing = mailing
        .then(() => mailLinks(`${parts.name}@${parts.domain}`))
        .catch((error: Error) => logger.warn({ reason: error.name }, 'a sign-in link was not mailed'))
        .finally(() => {
          waiting -= 1
        })
    },
  }
}

/** Returns an address as it is stored. Errors: `ValidationFailed`. */
function mailOf(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const parts = emailPartsOf(text)
  const mail = parts && `${parts.name}@${parts.domain}`
  validate(mail === undefined ? { path: '/mail', rule: 'format' } : field('/mail', mail, line(3, 254)))
  return mail
}
