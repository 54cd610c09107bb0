import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { contractLimits } from '../../contract/limits.ts'
import { operationOf } from '../checks/grant.ts'
import { mediaTypeOf } from '../checks/request-checks.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { GatewayError } from '../errors.ts'
import { readChunks } from '../http/request-body.ts'
import {
  CommandParams,
  NavigationAcknowledgementAnswer,
  NavigationAcknowledgementBody,
  SCREENSHOT_TYPES,
  ScreenshotAcknowledgementAnswer,
  ScreenshotAcknowledgementBody,
  ScreenshotParams,
  UploadAnswer,
} from '../schemas/commands.ts'
import { markReplayed, operation } from './sessions.ts'

const COMMAND_ERRORS: PublicErrorCode[] = ['CommandNotFound', 'CommandAlreadyResolved', 'CommandExpired']
/** Some decisions are accepted although the capability is off. */
const DECISION_ERRORS: PublicErrorCode[] = ['RouteNotAdvertised', ...COMMAND_ERRORS]

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
        operationId: 'acknowledgeNavigation',
        summary: 'Report the outcome of a navigation',
        description:
          'First the decision of the visitor, then the result. A repeat of the same outcome gets the same answer.',
        tags: ['Commands'],
        params: CommandParams,
        body: NavigationAcknowledgementBody,
        response: { 200: NavigationAcknowledgementAnswer },
      },
      config: { ...operation, errors: DECISION_ERRORS },
    },
    async (request, reply) => {
      const { commandId, state, replayed } = await commands.acknowledgeNavigation(
        { ...request.params, ...request.body, ...operationOf(request) },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return { commandId, state }
    },
  )

  app.post(
    '/commands/screenshots/:requestId/acknowledgements',
    {
      schema: {
        operationId: 'acknowledgeScreenshot',
        summary: 'Report whether the visitor consents to a screenshot',
        description: 'After a granted consent the answer has the terms of the upload.',
        tags: ['Commands'],
        params: ScreenshotParams,
        body: ScreenshotAcknowledgementBody,
        response: { 200: ScreenshotAcknowledgementAnswer },
      },
      config: { ...operation, errors: DECISION_ERRORS },
    },
    async (request, reply) => {
      const { requestId, state, upload, replayed } = await commands.acknowledgeScreenshot(
        { ...request.params, ...request.body, ...operationOf(request) },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      const terms = upload && {
        maxBytes: upload.maxBytes,
        contentTypes: upload.contentTypes,
        expiresAt: timeOf(upload.expiresAt),
      }
      return { requestId, state, upload: terms }
    },
  )

  await app.register(uploadRoute)
}

/** A separate scope without body parsers: the handler streams the body itself. */
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
      schema: {
        operationId: 'uploadScreenshot',
        summary: 'Upload a screenshot',
        description:
          'Needs a granted consent. The leading bytes must match the type. An incomplete upload stores nothing: send it again with the same key.',
        tags: ['Commands'],
        params: ScreenshotParams,
        response: { 201: UploadAnswer },
      },
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
      // A missing type passes the content type check only if the body is empty, so reject it here.
      if (contentType === undefined)
        throw new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'type' }] })
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
        // Marks a complete upload. Without this part the core stores nothing.
        if (body.isWhole()) yield { part: { case: 'end', value: { byteLength: BigInt(sent) } } } as const
      }
      try {
        const { requestId, state, byteLength, sha256, replayed } = await commands.uploadScreenshot(parts(), {
          ...callOptions(request),
          // The body may arrive for this time.
          timeoutMs: REQUEST_TIMEOUT_MS + CORE_DEADLINE_MS,
        })
        markReplayed(reply, replayed)
        return reply.code(201).send({ requestId, state, byteLength, sha256 })
      } catch (error) {
        // If the body was incomplete, its error explains the failed call.
        throw body.failure() ?? error
      } finally {
        body.stop()
      }
    },
  )
}
