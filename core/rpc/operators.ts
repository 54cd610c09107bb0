import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import {
  InvitationSchema,
  OperatorRole,
  OperatorSchema,
  OperatorService,
  PasskeySchema,
  SessionSchema,
} from '#proto/operator/v1/operator_pb.js'
import type { Core } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { mailerOf } from '../mail/mailer.ts'
import {
  defaultNotifications,
  isPushed,
  keepLanguage,
  reportAttention,
  setNotifications,
  setPushSubscription,
} from '../notices/operator-choices.ts'
import { pushKeyOf } from '../notices/push.ts'
import {
  confirmMail,
  endSessionOf,
  inviteOperator,
  listInvitations,
  removeOperator,
  revokeInvitation,
  setOperatorRole,
  updateOwnAccount,
} from '../operators/accounts.ts'
import { consoleSessionsIn } from '../operators/console-sessions.ts'
import { type Member, type Passkey, publicIdOf, type SignInLink } from '../operators/model.ts'
import { addPasskey, beginPasskey, listPasskeys, removePasskeys } from '../operators/passkeys.ts'
import { findMember, isActive, listMembers } from '../operators/teams.ts'
import { facesOf } from '../pictures/pictures.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { emptyAfter, fieldsOf, nameOf, toProto } from './proto-values.ts'

export function operatorService(router: ConnectRouter, core: Core) {
  async function toOperators(workspaceId: string, members: Member[]) {
    const ids = members.map(({ id }) => id)
    const [faces, keys] = await Promise.all([facesOf(core, workspaceId, ids), listPasskeys(core, workspaceId)])
    return members.map((member) =>
      toProto(OperatorSchema, {
        ...member,
        operatorId: member.id,
        avatarUrl: faces.get(member.id),
        passkeys: keys.filter(({ operator }) => operator === member.id).length,
      }),
    )
  }

  const toOperator = async (workspaceId: string, member: Member) => (await toOperators(workspaceId, [member]))[0]

  /** Returns the account of the caller's console session. Errors: `PermissionDenied` if it has none. */
  async function own(context: HandlerContext) {
    const { workspaceId = '', subject, consoleSession } = callerOf(context)
    const member = consoleSession?.account ? await findMember(core, workspaceId, subject) : undefined
    if (!member) throw new ServiceError('PermissionDenied')
    return { workspaceId, member, sessionId: consoleSession!.id }
  }

  /** Rejects accounts of the identity provider, which decides about their sign-ins. */
  async function ownWithPasskeys(context: HandlerContext) {
    const found = await own(context)
    if (!found.member.role) throw new ServiceError('PermissionDenied')
    return found
  }

  /** Returns the operator whose sessions the caller sees; undefined for all. */
  const seenOperator = (context: HandlerContext) => {
    const { scopes, subject } = callerOf(context)
    return scopes.has('workspaces:write') ? undefined : subject
  }

  router.service(OperatorService, {
    async listOperators({ workspaceId: named, includeRemoved }, context) {
      const workspaceId = requiredWorkspace(context, named)
      const members = (await listMembers(core, workspaceId)).filter((member) => includeRemoved || isActive(member))
      const sorted = members.toSorted((one, other) => one.name.localeCompare(other.name))
      return { operators: await toOperators(workspaceId, sorted) }
    },

    async inviteOperator({ workspaceId: named, role, mail, operatorId }, context) {
      const { workspaceId } = await findWorkspace(core, requiredWorkspace(context, named))
      const given = operatorId === '' ? { role: fromRole(role), mail } : { operator: operatorId }
      const { secret, link, mailed } = await inviteOperator(core, callerOf(context), { workspaceId, ...given })
      return { secret, invitation: toInvitation(link), mailed }
    },

    async listInvitations({ workspaceId }, context) {
      const open = await listInvitations(core, requiredWorkspace(context, workspaceId))
      return { invitations: open.map(toInvitation) }
    },

    revokeInvitation: ({ workspaceId, invitationId }, context) =>
      emptyAfter(revokeInvitation(core, requiredWorkspace(context, workspaceId), invitationId)),

    async setOperatorRole({ workspaceId: named, operatorId, role }, context) {
      const workspaceId = requiredWorkspace(context, named)
      const changed = fromRole(role)
      if (!changed) throw invalid('/role', 'required')
      const member = await setOperatorRole(core, callerOf(context), workspaceId, operatorId, changed)
      return { operator: await toOperator(workspaceId, member) }
    },

    removeOperator: ({ workspaceId, operatorId }, context) =>
      emptyAfter(removeOperator(core, callerOf(context), requiredWorkspace(context, workspaceId), operatorId)),

    async listSessions({ workspaceId: named }, context) {
      const workspaceId = requiredWorkspace(context, named)
      const current = callerOf(context).consoleSession?.id
      const names = new Map((await listMembers(core, workspaceId)).map(({ id, name }) => [id, name]))
      const sessions = await consoleSessionsIn(core, workspaceId, seenOperator(context))
      return {
        sessions: sessions.map(({ id, operator, displayName, method, createdAt: beganAt, expiresAt }) =>
          toProto(SessionSchema, {
            ...{ operatorId: operator, method, beganAt, expiresAt },
            consoleSessionId: publicIdOf({ id }),
            name: names.get(operator) ?? displayName,
            current: id === current,
          }),
        ),
      }
    },

    endSession({ workspaceId: named, consoleSessionId }, context) {
      const workspaceId = requiredWorkspace(context, named)
      return emptyAfter(endSessionOf(core, callerOf(context), workspaceId, consoleSessionId, seenOperator(context)))
    },

    async getOwnAccount(_, context) {
      const { workspaceId, member } = await own(context)
      const keys = await listPasskeys(core, workspaceId, member.id)
      return { operator: await toOperator(workspaceId, member), passkeys: keys.map(toPasskey) }
    },

    async updateOwnAccount({ name, mail }, context) {
      const { workspaceId, member } = await own(context)
      const { member: changed, ...mailed } = await updateOwnAccount(core, workspaceId, member.id, { name, mail })
      return { operator: await toOperator(workspaceId, changed), ...mailed }
    },

    async confirmOwnMail({ secret }, context) {
      const { workspaceId, member } = await own(context)
      return { operator: await toOperator(workspaceId, await confirmMail(core, workspaceId, member.id, secret)) }
    },

    async getOwnNotifications(_, context) {
      const { member, sessionId } = await own(context)
      return {
        notifications: member.notifications ?? defaultNotifications,
        publicKey: await pushKeyOf(core),
        pushed: await isPushed(core, sessionId),
        mail: mailerOf(core).isEnabled,
      }
    },

    async updateOwnNotifications({ notifications }, context) {
      const { workspaceId, member } = await own(context)
      if (!notifications) throw invalid('/notifications', 'required')
      return emptyAfter(setNotifications(core, workspaceId, member.id, fieldsOf(notifications)))
    },

    async setPushSubscription({ endpoint, p256dh, auth }, context) {
      const { sessionId } = await own(context)
      const subscription = endpoint === '' ? undefined : { endpoint, keys: { p256dh, auth } }
      return emptyAfter(setPushSubscription(core, sessionId, subscription))
    },

    async reportAttention({ looking, conversationId, language }, context) {
      const { workspaceId, member, sessionId } = await own(context)
      await keepLanguage(core, workspaceId, member, language)
      return { others: await reportAttention(core, sessionId, looking, conversationId) }
    },

    async beginPasskey({ origin }, context) {
      const { workspaceId, member, sessionId } = await ownWithPasskeys(context)
      return { optionsJson: await beginPasskey(core, workspaceId, member, sessionId, origin) }
    },

    async addPasskey({ responseJson, name }, context) {
      const { workspaceId, member, sessionId } = await ownWithPasskeys(context)
      const owner = { workspaceId, operator: member.id, sessionId }
      return { passkey: toPasskey(await addPasskey(core, owner, { name, responseJson })) }
    },

    async removePasskey({ passkeyId }, context) {
      const { workspaceId, member } = await own(context)
      return emptyAfter(removePasskeys(core, workspaceId, member.id, passkeyId))
    },
  })
}

const fromRole = (role: OperatorRole) => nameOf(OperatorRole, role)

function toInvitation(link: SignInLink) {
  const { account, operator, expiresAt } = link
  const operatorId = account?.role ? '' : operator
  return toProto(InvitationSchema, { ...account, operatorId, invitationId: publicIdOf(link), expiresAt })
}

const toPasskey = (passkey: Passkey) => toProto(PasskeySchema, { ...passkey, passkeyId: passkey.id })
