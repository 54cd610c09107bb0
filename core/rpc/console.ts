import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ConsoleService, type SignInRequest } from '#proto/console/v1/console_pb.js'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import type { SignInCredential } from '../operators/console-sessions.ts'
import type { ConsoleSession } from '../operators/model.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'

export function consoleService(router: ConnectRouter, { consoleSessions, providerSignIn }: CoreContext): void {
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
      const { secret, session } = await consoleSessions.signIn(toCredential(credential), displayName, replacedSecret)
      return { sessionSecret: secret, session: toMessage(session) }
    },

    beginProviderSignIn: ({ origin, replacedSecret }) => providerSignIn.begin(origin, replacedSecret),

    async finishProviderSignIn(callback) {
      const { secret, session } = await providerSignIn.finish(callback)
      return { sessionSecret: secret, session: toMessage(session) }
    },

    getSignInOptions: () => ({ provider: providerSignIn.isEnabled }),

    async getConsoleSession({ sessionSecret }) {
      return { session: toMessage(await consoleSessions.find(sessionSecret)) }
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
      throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/credential', rule: 'required' }] })
  }
}

const toMessage = ({ id, expiresAt, createdAt: _, provider: __, ...rest }: ConsoleSession) => ({
  ...rest,
  // The id of a session is the hash of its secret. Half of it identifies the session in a browser.
  consoleSessionId: id.slice(0, 22),
  expiresAt: timestampFromDate(expiresAt),
})
