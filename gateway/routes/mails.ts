import type { FastifyPluginAsync } from 'fastify'
import { escapeHtml } from '../../contract/html.ts'
import { directionOf, mailTextsOf } from '../../contract/mail-texts.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { asOperator } from '../errors.ts'
import { inOrder } from '../in-order.ts'
import { checkRate } from '../limits/rate-limits.ts'

/** A mailbox sends `List-Unsubscribe=One-Click` as a form (RFC 8058). The content is not read. */
const BODY_MAX_BYTES = 4_096

/**
 * /mail/{language}/{token}: stops the mails for a conversation, without a login. A GET changes nothing,
 * because mail checkers open links.
 */
export const mailRoutes: FastifyPluginAsync = async (app) => {
  const { messaging } = coreOf(app.gateway)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_MAX_BYTES }, (_request, _body, done) => done(null))
  app.addHook('preHandler', inOrder([checkRate]))
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  const options = { schema: { hide: true }, config: { rate: 'config' } } as const
  const path = '/:language/:token'

  app.get<{ Params: { language: string } }>(path, options, async ({ params }, reply) => {
    const { stop } = mailTextsOf(params.language).texts
    return reply
      .type('text/html; charset=utf-8')
      .send(page(params.language, stop, `<form method="post"><button>${escapeHtml(stop)}</button></form>`))
  })

  app.post<{ Params: { language: string; token: string } }>(path, options, async (request, reply) => {
    const { language, token } = request.params
    await messaging.stopMails({ token }, callOptions(request)).catch(asOperator)
    const { stopped } = mailTextsOf(language).texts
    return reply.type('text/html; charset=utf-8').send(page(language, stopped, `<p>${escapeHtml(stopped)}</p>`))
  })
}

function page(asked: string, title: string, content: string) {
  const { language } = mailTextsOf(asked)
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title>`
  return `<!doctype html><html lang="${language}" dir="${directionOf(language)}"><head>${head}</head><body>${content}</body></html>\n`
}
