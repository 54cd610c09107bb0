import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ConsoleService, type SignInRequest } from '#proto/console/v1/console_pb.js'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { CoreContext } from '../context.ts'
import { invalid, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SignedIn, SignInCredential } from '../operators/console-sessions.ts'
import { type ConsoleSession, publicIdOf } from '../operators/model.ts'
import { scopesOfRole } from '../operators/roles.ts'
import { facesOf, keepFace } from '../pictures/pictures.ts'
import { field, line, validate } from '../rules.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'

export function consoleService(router: ConnectRouter, core: CoreContext): void {
  const { accounts, consoleSessions, passkeys, providerSignIn, teams, workspaces } = core

  async function toMessage(session: ConsoleSession) {
    const { workspaceId, operator, displayName, scopes, expiresAt, account } = session
    return {
      workspaceId,
      operator,
      displayName,
      scopes,
      account,
      consoleSessionId: publicIdOf(session),
      expiresAt: timestampFromDate(expiresAt),
      avatarUrl: (await facesOf(core, workspaceId, [operator])).get(operator),
    }
  }

  async function toSignedIn({ secret, session }: SignedIn) {
    await keepFace(core, session.workspaceId, session.operator)
    return { sessionSecret: secret, session: await toMessage(session) }
  }

  async function readLink(secret: string) {
    const { workspaceId, operator, account } = await consoleSessions.findLink(secret)
    const member = account && (await teams.find(workspaceId, operator))
    const { name } = await workspaces.findWorkspace(workspaceId)
    const isNew = account?.role !== undefined && !member
    return { workspaceName: name, name: member?.name, firstOwner: isNew && account.isFirst, invitation: isNew }
  }

  router.service(ConsoleService, {
    async createSignInLink({ workspaceId, operator, scopes, owner }, context) {
      if (owner) {
        const { workspaceId: only, scopes: held } = callerOf(context)
        if (only !== undefined || scopesOfRole.owner.some((scope) => !held.has(scope)))
          throw new ServiceError(ErrorCode.PERMISSION_DENIED)
        const made = await consoleSessions.createOwnerLink(
          requiredWorkspace(context, workspaceId),
          operator || newId('op'),
        )
        return { secret: made.secret, expiresAt: timestampFromDate(made.expiresAt) }
      }
      const { secret, expiresAt } = await consoleSessions.createLink(callerOf(context), {
        workspaceId: requiredWorkspace(context, workspaceId),
        operator: operator || undefined,
        scopes,
      })
      return { secret, expiresAt: timestampFromDate(expiresAt) }
    },

    async signIn({ credential, displayName, replacedSecret, workspaceName }) {
      validate(field('/workspaceName', workspaceName || undefined, line(1, 128)))
      const isFirst =
        workspaceName !== '' && credential.case === 'linkSecret' && (await readLink(credential.value)).firstOwner
      const signedIn = await consoleSessions.signIn(toCredential(credential), displayName, replacedSecret)
      if (isFirst) await workspaces.updateWorkspace(signedIn.session.workspaceId, { name: workspaceName })
      return toSignedIn(signedIn)
    },

    getSignInLink: ({ linkSecret }) => readLink(linkSecret),

    mailSignInLink({ mail }) {
      accounts.mailSignInLink(mail)
      return {}
    },

    beginPasskeySignIn: ({ origin }) => passkeys.beginSignIn(origin),

    async finishPasskeySignIn({ responseJson, browserSecret, replacedSecret }) {
      return toSignedIn(await passkeys.finishSignIn(responseJson, browserSecret, replacedSecret))
    },

    beginProviderSignIn: ({ origin, replacedSecret }) => providerSignIn.begin(origin, replacedSecret),

    finishProviderSignIn: async (callback) => toSignedIn(await providerSignIn.finish(callback)),

    getSignInOptions: () => ({ provider: providerSignIn.isEnabled, mail: accounts.mailsLinks }),

    async getConsoleSession({ sessionSecret }) {
      return { session: await toMessage(await consoleSessions.find(sessionSecret)) }
    },

    async signOut({ sessionSecret }) {
      await consoleSessions.signOut(sessionSecret)
      return {}
    },
  })
}

function toCredential(credential: SignInRequest['credential']): SignInCredential {
  switch (credential.case) {
    case 'linkSecret':
      return { linkSecret: credential.value }
    case 'workspaceSession':
      return { workspaceSession: credential.value }
    default:
      throw invalid('/credential', 'required')
  }
}
