import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { WidgetConfig } from '#proto/session/v1/session_pb.js'
import { CONTRACT, CONTRACT_VERSION } from '../checks/request-checks.ts'
import { ConfigParams, WidgetConfigAnswer } from '../schemas/config.ts'
import { timeOf } from './proto-values.ts'
import { callOptions, type RouteDeps } from './route-deps.ts'

/** GET /config/{publicSiteKey} */
export const configRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, refusals, heartbeatSeconds }) => {
  app.get(
    '/config/:publicSiteKey',
    {
      schema: {
        operationId: 'getConfig',
        summary: 'Read the public configuration',
        description: 'Appearance, capabilities and limits of the installation. Needs no session.',
        tags: ['Bootstrap'],
        params: ConfigParams,
        response: { 200: WidgetConfigAnswer, 304: Type.Null() },
      },
      config: {
        rate: 'config',
        described: { headers: ['If-None-Match'], errors: ['InstallationNotFound', 'ConnectionDisabled'] },
      },
    },
    async (request, reply) => {
      const { publicSiteKey } = request.params
      const origin = request.headers.origin!
      const { config } = await refusals.check(request, 'site', `${publicSiteKey} ${origin}`, () =>
        core.sessions.getConfig({ publicSiteKey, origin }, callOptions(request)),
      )
      const answer = toAnswer(config!, heartbeatSeconds)
      const etag = `"${createHash('sha256').update(JSON.stringify(answer)).digest('base64url').slice(0, 27)}"`
      reply.header('cache-control', 'public, max-age=60').header('etag', etag)
      if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send(null)
      return answer
    },
  )
}

/** Whether `If-None-Match` contains the ETag (weak comparison, RFC 9110, section 13.1.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
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
    limits,
    realtime: { ...realtime, heartbeatSeconds },
  }
}
