import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { FormKind } from '#proto/lead/v1/lead_pb.js'
import { coreOf } from '../core-calls/core-clients.ts'
import about from '../schemas/about.json' with { type: 'json' }
import { Strict, Text, WellFormed } from '../schemas/fields.ts'
import operations from './operations.json' with { type: 'json' }
import { callOnce, operation } from './sessions.ts'

const FIELDS_MAX = 64

/** The installation defines the fields of a form, and the core validates them. */
const SubmitFormBody = Strict(
  { fields: Type.Record(Text, WellFormed(), { maxProperties: FIELDS_MAX }) },
  about.SubmitFormBody,
)

const SubmitFormAnswer = Strict({ formSubmissionId: Text }, about.SubmitFormAnswer)

const forms = [
  ['/forms/pre-chat', FormKind.PRE_CHAT, 'preChatForm', operations.submitPreChatForm],
  ['/forms/offline', FormKind.OFFLINE, 'offlineForm', operations.submitOfflineForm],
] as const

/** POST /forms/pre-chat, /forms/offline, for installations that advertise them. */
export const formRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [path, form, advertisedBy, described] of forms) {
    app.post(
      path,
      {
        schema: { ...described, body: SubmitFormBody, response: { 202: SubmitFormAnswer } },
        config: { ...operation, advertisedBy, errors: ['ConsentRequired', 'VisitorSuppressed'] },
      },
      async (request, reply) =>
        reply.code(202).send(await callOnce(reply, coreOf(app.gateway).leads.submitForm, { form, ...request.body })),
    )
  }
}
