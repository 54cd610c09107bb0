import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Form, WidgetConfig } from '#proto/session/v1/session_pb.js'
import { CONTRACT, CONTRACT_VERSION } from '../checks/version.ts'
import { ConfigParams, type FormAnswer, WidgetConfigAnswer } from '../schemas/config.ts'
import { Answers, NoQuery } from '../schemas/fields.ts'
import { callOptions, type RouteDeps } from './route-deps.ts'

/** GET /config/{publicSiteKey} */
export const configRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, refusals }) => {
  app.get(
    '/config/:publicSiteKey',
    {
      schema: {
        operationId: 'getConfig',
        summary: 'Read the public configuration',
        description: 'Appearance, capabilities and limits of the installation. Needs no session.',
        tags: ['Bootstrap'],
        params: ConfigParams,
        querystring: NoQuery,
        response: Answers({ 200: WidgetConfigAnswer, 304: Type.Null() }),
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
      const answer = toAnswer(config!)
      const etag = `"${createHash('sha256').update(JSON.stringify(answer)).digest('base64url').slice(0, 27)}"`
      reply.header('cache-control', 'public, max-age=60').header('etag', etag)
      if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send(null)
      return answer
    },
  )
}

/** Whether the browser has this answer already (weak comparison, RFC 9110, section 13.1.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

function toAnswer(config: WidgetConfig): WidgetConfigAnswer {
  const { appearance, capabilities, consent, limits, realtime } = config
  if (!appearance || !capabilities || !consent || !limits || !realtime)
    throw new Error('the configuration from the core is incomplete')
  const { $typeName: _appearance, ...look } = appearance
  return {
    contract: CONTRACT,
    contractVersion: CONTRACT_VERSION,
    publicSiteKey: config.publicSiteKey,
    locale: { default: config.defaultLocale, supported: config.supportedLocales },
    appearance: { ...look, position: look.position === 'left' ? 'left' : 'right' },
    capabilities: {
      identity: capabilities.identity ?? false,
      typing: capabilities.typing ?? false,
      pageContext: capabilities.pageContext ?? false,
      navigation: capabilities.navigation ?? false,
      screenshots: capabilities.screenshots ?? false,
      preChatForm: capabilities.preChatForm ?? false,
      offlineForm: capabilities.offlineForm ?? false,
      messageRetryRoute: capabilities.messageRetryRoute ?? false,
    },
    forms: {
      preChat: config.forms?.preChat && toForm(config.forms.preChat),
      offline: config.forms?.offline && toForm(config.forms.offline),
    },
    consent,
    availability: { online: config.online },
    limits,
    realtime,
  }
}

function toForm({ fields }: Form): FormAnswer {
  return {
    fields: fields.map(({ name, label, type, required, maxLength = 0 }) => ({
      name,
      label,
      type: type as FormAnswer['fields'][number]['type'],
      required,
      maxLength,
    })),
  }
}
