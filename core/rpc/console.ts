import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ConsoleService, type SignInRequest } from '#proto/console/v1/console_pb.js'
import type { CoreContext } from '../context.ts'
import { invalid } from '../errors.ts'
import type { SignedIn, SignInCredential } from '../operators/console-sessions.ts'
import type { ConsoleSession } from '../operators/model.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'

export function consoleService(router: ConnectRouter, core: CoreContext): void {
  const { consoleSessions, providerSignIn, pictures } = core

  async function toMessage({ id, expiresAt, createdAt: _, provider: __, ...rest }: ConsoleSession) {
    const { workspaceId, operator } = rest
    return {
      ...rest,
      // The id of a session is the hash of its secret. Half of it identifies the session in a browser.
      consoleSessionId: id.slice(0, 22),
      expiresAt: timestampFromDate(expiresAt),
      avatarUrl: (await pictures.facesOf(workspaceId, [operator])).get(operator),
    }
  }

  async function toSignedIn({ secret, session }: SignedIn) {
    await pictures.keepFace(session.workspaceId, session.operator)
    return { sessionSecret: secret, session: await toMessage(session) }
  }

  router.service(ConsoleService, {
    async createSignInLink({ workspaceId, operator, scopes }, context) {
      const { secret, expiresAt } = await consoleSessions.createLink(callerOf(context), {
        workspaceId: requiredWorkspace(context, workspaceId),
        operator: operator || undefined,
        scopes,
      })
      return { secret, expiresAt: timestampFromDate(expiresAt) }
    },

    async signIn({ credential, displayName, replacedSecret }) {
      return toSignedIn(await consoleSessions.signIn(toCredential(credential), displayName, replacedSecret))
    },

    beginProviderSignIn: ({ origin, replacedSecret }) => providerSignIn.begin(origin, replacedSecret),

    finishProviderSignIn: async (callback) => toSignedIn(await providerSignIn.finish(callback)),

    getSignInOptions: () => ({ provider: providerSignIn.isEnabled }),

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
