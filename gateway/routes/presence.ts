import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { PresenceBody } from '../schemas/messages.ts'

const states = { here: Presence.HERE, away: Presence.AWAY }

/** POST /presence */
export const presenceRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, presence }) => {
  // A report replaces the tab's earlier report, so this route takes no `Idempotency-Key`.
  app.post(
    '/presence',
    {
      schema: {
        operationId: 'reportPresence',
        summary: 'Report whether the visitor sees the chat',
        description:
          'Needs the capability `presence`. `here` while this tab shows the chat: repeat it every 2 seconds, because it expires after 4. `away` when the tab no longer shows the chat. Operators see it; nothing is stored.',
        tags: ['Events'],
        body: PresenceBody,
        response: { 204: Type.Null({ description: 'Operators are notified.' }) },
      },
      config: {
        scoped: true,
        advertisedBy: 'presence',
        rate: 'presence',
        described: { errors: ['RouteNotAdvertised', 'ConsentRequired'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const { tab, state } = request.body
      const { conversationId, workspaceId } = await core.sessions.authorizeGrant(
        { credentials, reportsHere: state === 'here' },
        callOptions(request),
      )
      presence.report({ conversationId, workspaceId, tab, presence: states[state] })
      return reply.code(204).send(null)
    },
  )
}
