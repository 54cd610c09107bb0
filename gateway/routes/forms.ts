import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { FormKind } from '#proto/lead/v1/lead_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { SubmitFormAnswer, SubmitFormBody } from '../schemas/forms.ts'
import { markReplayed } from './sessions.ts'

const forms = [
  {
    path: '/forms/pre-chat',
    form: FormKind.PRE_CHAT,
    advertisedBy: 'preChatForm',
    operationId: 'submitPreChatForm',
    summary: 'Submit the pre-chat form',
  },
  {
    path: '/forms/offline',
    form: FormKind.OFFLINE,
    advertisedBy: 'offlineForm',
    operationId: 'submitOfflineForm',
    summary: 'Submit the offline form',
  },
] as const

/** POST /forms/pre-chat, /forms/offline, for installations that advertise them. */
export const formRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  for (const { path, form, advertisedBy, operationId, summary } of forms) {
    app.post(
      path,
      {
        schema: {
          operationId,
          summary,
          description:
            'The fields are those of `forms` in the configuration. `issues` lists each invalid one. A lead is captured from them.',
          tags: ['Forms'],
          body: SubmitFormBody,
          response: { 202: SubmitFormAnswer },
        },
        config: {
          scoped: true,
          advertisedBy,
          idempotent: true,
          rate: 'calls',
          described: { errors: ['ConsentRequired', 'VisitorSuppressed'] },
        },
      },
      async (request, reply) => {
        const { credentials } = visitorOf(request)
        const { formSubmissionId, replayed } = await core.leads.submitForm(
          { credentials, form, fields: request.body.fields, idempotencyKey: idempotencyKeyOf(request) },
          callOptions(request),
        )
        markReplayed(reply, replayed)
        return reply.code(202).send({ formSubmissionId })
      },
    )
  }
}
