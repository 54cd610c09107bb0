import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { FormKind } from '#proto/lead/v1/lead_pb.js'
import { operationOf } from '../checks/grant.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { Strict, WellFormed } from '../schemas/fields.ts'
import { markReplayed, operation } from './sessions.ts'

const FIELDS_MAX = 64

/** The installation defines the fields of a form, and the core validates them. */
const SubmitFormBody = Strict(
  { fields: Type.Record(Type.String(), WellFormed(), { maxProperties: FIELDS_MAX }) },
  { examples: [{ fields: { name: 'Ada', email: 'ada@example.com' } }] },
)

const SubmitFormAnswer = Strict(
  { formSubmissionId: Type.String() },
  { description: 'The submission and its lead are stored durably.', examples: [{ formSubmissionId: 'frm_4t7n2c' }] },
)

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
export const formRoutes: FastifyPluginAsyncTypebox = async (app) => {
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
        config: { ...operation, advertisedBy, errors: ['ConsentRequired', 'VisitorSuppressed'] },
      },
      async (request, reply) => {
        const { formSubmissionId, replayed } = await coreOf(app.gateway).leads.submitForm(
          { ...operationOf(request), form, fields: request.body.fields },
          callOptions(request),
        )
        markReplayed(reply, replayed)
        return reply.code(202).send({ formSubmissionId })
      },
    )
  }
}
