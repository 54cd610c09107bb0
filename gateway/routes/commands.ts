import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { contractLimits } from '../../contract/limits.ts'
import { operationOf } from '../checks/grant.ts'
import { mediaTypeOf } from '../checks/request-checks.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { withTimes } from '../core-calls/proto-values.ts'
import { GatewayError, invalid } from '../errors.ts'
import { readChunks } from '../http/request-body.ts'
import about from '../schemas/about.json' with { type: 'json' }
import { Named, OneOf, Strict, Text, Time } from '../schemas/fields.ts'
import operations from './operations.json' with { type: 'json' }
import { answerOnce, callOnce, operation } from './sessions.ts'

/** Media types of a screenshot. The core checks that the bytes match the type. */
const SCREENSHOT_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const

/** An unknown id is answered with `CommandNotFound`. */
const CommandParams = Strict({ commandId: Text })
const ScreenshotParams = Strict({ requestId: Text })

export const NavigationAcknowledgementBody = Strict(
  { outcome: OneOf(['accepted', 'declined', 'completed', 'failed', 'unsupported']) },
  about.NavigationAcknowledgementBody,
)
export const NavigationAcknowledgementAnswer = Strict(
  {
    commandId: Text,
    state: Named('accepted', 'declined', 'completed', 'failed', 'unsupported'),
  },
  about.NavigationAcknowledgementAnswer,
)

export const ScreenshotAcknowledgementBody = Strict(
  { consent: OneOf(['granted', 'denied', 'unsupported']) },
  about.ScreenshotAcknowledgementBody,
)
export const ScreenshotAcknowledgementAnswer = Strict(
  {
    requestId: Text,
    state: Named('granted', 'denied', 'unsupported'),
    upload: Type.Optional(Strict({ maxBytes: Type.Integer(), contentTypes: Type.Array(Text), expiresAt: Time })),
  },
  about.ScreenshotAcknowledgementAnswer,
)

export const UploadAnswer = Strict(
  {
    requestId: Text,
    state: Named('uploaded'),
    byteLength: Type.Integer({ minimum: 1 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  about.UploadAnswer,
)

const COMMAND_ERRORS: PublicErrorCode[] = ['CommandNotFound', 'CommandAlreadyResolved', 'CommandExpired']
/** Some decisions are accepted although the capability is off. */
const decision = { ...operation, coreDecides: true, errors: COMMAND_ERRORS }

/**
 * POST /commands/navigation/…/acknowledgements, /commands/screenshots/…/acknowledgements,
 * /commands/screenshots/…/upload
 */
export const commandRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { commands } = coreOf(app.gateway)

  app.post(
    '/commands/navigation/:commandId/acknowledgements',
    {
      schema: {
        ...operations.acknowledgeNavigation,
        params: CommandParams,
        body: NavigationAcknowledgementBody,
        response: { 200: NavigationAcknowledgementAnswer },
      },
      config: { ...decision, advertisedBy: 'navigation' },
    },
    (request, reply) => callOnce(reply, commands.acknowledgeNavigation, { ...request.params, ...request.body }),
  )

  app.post(
    '/commands/screenshots/:requestId/acknowledgements',
    {
      schema: {
        ...operations.acknowledgeScreenshot,
        params: ScreenshotParams,
        body: ScreenshotAcknowledgementBody,
        response: { 200: ScreenshotAcknowledgementAnswer },
      },
      config: { ...decision, advertisedBy: 'screenshots' },
    },
    async (request, reply) => {
      const acknowledgement = { ...request.params, ...request.body }
      const answer = await callOnce(reply, commands.acknowledgeScreenshot, acknowledgement)
      return { ...answer, upload: answer.upload && withTimes(answer.upload) }
    },
  )

  await app.register(uploadRoute)
}

/** A scope without body parsers, because the handler streams the body. */
const uploadRoute: FastifyPluginAsyncTypebox = async (app) => {
  const { commands } = coreOf(app.gateway)
  const { REQUEST_TIMEOUT_MS, CORE_DEADLINE_MS } = app.gateway.config
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => {
    const tooLarge = Number(payload.headers['content-length']) > contractLimits.screenshotMaxBytes
    done(tooLarge ? new GatewayError('PayloadTooLarge') : null)
  })

  app.post(
    '/commands/screenshots/:requestId/upload',
    {
      schema: { ...operations.uploadScreenshot, params: ScreenshotParams, response: { 201: UploadAnswer } },
      config: {
        ...operation,
        advertisedBy: 'screenshots',
        bodyTypes: SCREENSHOT_TYPES,
        bodyMaxBytes: contractLimits.screenshotMaxBytes,
        errors: [...COMMAND_ERRORS, 'ConsentRequired'],
      },
    },
    async (request, reply) => {
      const { 'content-type': contentType, 'content-length': length } = request.headers
      // Only an empty body passes the content type check without a type.
      if (contentType === undefined) throw invalid('', 'type')
      const header = {
        ...request.params,
        ...operationOf(request),
        contentType: mediaTypeOf(contentType),
        byteLength: length === undefined ? undefined : BigInt(length),
      }
      const body = readChunks(request.raw, contractLimits.screenshotMaxBytes)
      async function* parts() {
        yield { part: { case: 'header', value: header } } as const
        let sent = 0
        for await (const value of body.chunks) {
          sent += value.length
          yield { part: { case: 'chunk', value } } as const
        }
        // Without this part the core stores nothing.
        if (body.isWhole()) yield { part: { case: 'end', value: { byteLength: BigInt(sent) } } } as const
      }
      try {
        const answer = await commands.uploadScreenshot(parts(), {
          ...callOptions(request),
          // The body may arrive for this time.
          timeoutMs: REQUEST_TIMEOUT_MS + CORE_DEADLINE_MS,
        })
        return reply.code(201).send(answerOnce(reply, answer))
      } catch (error) {
        // An incomplete body explains the failed call.
        throw body.failure() ?? error
      } finally {
        body.stop()
      }
    },
  )
}
