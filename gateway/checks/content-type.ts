import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types of a body that is not JSON. */
    bodyTypes?: readonly string[]
    /** Its largest size, where it is not that of a JSON body. */
    bodyMaxBytes?: number
  }
}

const JSON_TYPE = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/**
 * Where there is a body it says what it is, not compressed: JSON in UTF-8, or one of the route's own types, else
 * `UnsupportedMediaType`.
 */
export const requireContentType: onRequestHookHandler = (request, _reply, done) => {
  const { config, schema } = request.routeOptions
  if (schema?.body === undefined && config.bodyTypes === undefined) return done()
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  const good = config.bodyTypes?.includes(mediaTypeOf(type)) ?? JSON_TYPE.test(type.trim())
  done(good && encoding.toLowerCase() === 'identity' ? undefined : new GatewayError('UnsupportedMediaType'))
}

/** The type without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}
