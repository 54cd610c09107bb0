import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { WidgetConfig } from '#proto/session/v1/session_pb.js'
import { compatibility } from '../../contract/event-categories.ts'
import type { AllFields } from '../../contract/proto-fields.ts'
import { CONTRACT, CONTRACT_VERSION } from '../../contract/public-api.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { limitRefusals } from '../limits/refusals.ts'
import { ConfigParams, WidgetConfigAnswer } from '../schemas/config.ts'
import operations from './operations.json' with { type: 'json' }
import { matchesEtag } from './pictures.ts'

/** GET /config/{publicSiteKey} */
export const configRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { gateway } = app
  app.get(
    '/config/:publicSiteKey',
    {
      schema: {
        ...operations.getConfig,
        params: ConfigParams,
        response: { 200: WidgetConfigAnswer, 304: Type.Null() },
      },
      config: { rate: 'config', headers: ['If-None-Match'], errors: ['InstallationNotFound', 'ConnectionDisabled'] },
    },
    async (request, reply) => {
      const { publicSiteKey } = request.params
      const origin = request.headers.origin!
      // No answer is cached here: a core refuses as soon as a site is disabled or deleted.
      const { config } = await limitRefusals(request, 'site', `${publicSiteKey} ${origin}`, () =>
        coreOf(gateway).sessions.getConfig({ publicSiteKey, origin }, callOptions(request)),
      )
      const answer = toAnswer(config!, gateway.config.HEARTBEAT_SECONDS)
      const hash = createHash('sha256').update(JSON.stringify(answer)).digest('base64url')
      const etag = `"${hash.slice(0, 27)}"`
      const untyped: FastifyReply = reply.headers({ 'cache-control': 'public, max-age=60', etag })
      if (matchesEtag(request.headers['if-none-match'], etag)) return untyped.code(304).send()
      return untyped.header('content-type', 'application/json; charset=utf-8').send(String(reply.serialize(answer)))
    },
  )
}

function toAnswer(config: WidgetConfig, heartbeatSeconds: number): WidgetConfigAnswer {
  const { appearance, capabilities, consent, limits, realtime } = config
  if (!appearance || !capabilities || !consent || !limits || !realtime)
    throw new Error('the configuration from the core is incomplete')
  return {
    contract: CONTRACT,
    contractVersion: CONTRACT_VERSION,
    publicSiteKey: config.publicSiteKey,
    locale: { default: config.defaultLocale, supported: config.supportedLocales },
    appearance: {
      ...appearance,
      position: appearance.position === 'left' ? 'left' : 'right',
      // Without translations the field is left out.
      translations: Object.keys(appearance.translations).length > 0 ? appearance.translations : undefined,
    },
    // The serializer adds the defaults of missing fields.
    capabilities: capabilities as WidgetConfigAnswer['capabilities'],
    forms: { ...config.forms } as WidgetConfigAnswer['forms'],
    consent,
    availability: {
      online: config.online,
      ...(config.nextChangeAt && { nextChangeAt: timeOf(config.nextChangeAt) }),
    },
    usualAnswerMinutes: config.usualAnswerMinutes,
    compatibility,
    limits,
    realtime: { ...realtime, heartbeatSeconds },
  } satisfies AllFields<WidgetConfigAnswer>
}
