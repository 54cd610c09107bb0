import type { ConnectRouter } from '@connectrpc/connect'
import {
  ConsoleService,
  ConsoleSessionSchema,
  CreateSignInLinkResponseSchema,
  type SignInRequest,
} from '#proto/console/v1/console_pb.js'
import type { Core } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { mailerOf } from '../mail/mailer.ts'
import { mailSignInLink } from '../operators/accounts.ts'
import {
  createOwnerLink,
  createSignInLink,
  endConsoleSessions,
  findConsoleSession,
  findSignInLink,
  type SignedIn,
  type SignInCredential,
  signIn,
} from '../operators/console-sessions.ts'
import { type ConsoleSession, publicIdOf, secretId } from '../operators/model.ts'
import { beginPasskeySignIn, finishPasskeySignIn } from '../operators/passkeys.ts'
import { beginProviderSignIn, finishProviderSignIn, identityProviderOf } from '../operators/provider-sign-in.ts'
import { findMember, scopesOfRole } from '../operators/teams.ts'
import { facesOf, keepFace } from '../pictures/pictures.ts'
import { field, line, validate } from '../rules.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'
import { findWorkspace, updateWorkspace } from '../workspaces/workspaces.ts'
import { emptyAfter, toProto } from './proto-values.ts'

export function consoleService(router: ConnectRouter, core: Core) {
  async function toMessage(session: ConsoleSession) {
    const avatarUrl = (await facesOf(core, session.workspaceId, [session.operator])).get(session.operator)
    return toProto(ConsoleSessionSchema, { ...session, consoleSessionId: publicIdOf(session), avatarUrl })
  }

  async function toSignedIn({ secret, session }: SignedIn) {
    await keepFace(core, session.workspaceId, session.operator)
    return { sessionSecret: secret, session: await toMessage(session) }
  }

  async function readLink(secret: string) {
    const { workspaceId, operator, account } = await findSignInLink(core, secret)
    const member = account && (await findMember(core, workspaceId, operator))
    const { name } = await findWorkspace(core, workspaceId)
    const isNew = account?.role !== undefined && !member
    return { workspaceName: name, name: member?.name, firstOwner: isNew && account.isFirst, invitation: isNew }
  }

  router.service(ConsoleService, {
    async createSignInLink({ workspaceId: named, operator, scopes, owner }, context) {
      const caller = callerOf(context)
      const { workspaceId: only, scopes: held } = caller
      if (owner && (only !== undefined || scopesOfRole.owner.some((scope) => !held.has(scope))))
        throw new ServiceError('PermissionDenied')
      const workspaceId = requiredWorkspace(context, named)
      const made = owner
        ? createOwnerLink(core, workspaceId, operator || newId('op'))
        : createSignInLink(core, caller, { workspaceId, operator: operator || undefined, scopes })
      return toProto(CreateSignInLinkResponseSchema, await made)
    },

    async signIn({ credential, displayName, replacedSecret, workspaceName }) {
      validate(field('/workspaceName', workspaceName || undefined, line(1, 128)))
      const isFirst =
        workspaceName !== '' && credential.case === 'linkSecret' && (await readLink(credential.value)).firstOwner
      const signedIn = await signIn(core, toCredential(credential), displayName, replacedSecret)
      if (isFirst) await updateWorkspace(core, signedIn.session.workspaceId, { name: workspaceName })
      return toSignedIn(signedIn)
    },

    getSignInLink: ({ linkSecret }) => readLink(linkSecret),

    mailSignInLink({ mail }) {
      mailSignInLink(core, mail)
      return {}
    },

    beginPasskeySignIn: ({ origin }) => beginPasskeySignIn(core, origin),

    async finishPasskeySignIn({ responseJson, browserSecret, replacedSecret }) {
      return toSignedIn(await finishPasskeySignIn(core, responseJson, browserSecret, replacedSecret))
    },

    beginProviderSignIn: ({ origin, replacedSecret }) => beginProviderSignIn(core, origin, replacedSecret),

    finishProviderSignIn: async (callback) => toSignedIn(await finishProviderSignIn(core, callback)),

    getSignInOptions: () => ({ provider: identityProviderOf(core) !== undefined, mail: mailerOf(core).isEnabled }),

    async getConsoleSession({ sessionSecret }) {
      return { session: await toMessage(await findConsoleSession(core, sessionSecret)) }
    },

    signOut: ({ sessionSecret }) => emptyAfter(endConsoleSessions(core, { id: secretId(sessionSecret) })),
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
