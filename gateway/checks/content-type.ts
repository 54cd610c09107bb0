import type { onRequestAsyncHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'
import { isEmptyBody } from '../request-body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types of a body that is not JSON. */
    bodyTypes?: readonly string[]
    /** Largest body of the route; defaults to the limit of JSON bodies. */
    bodyMaxBytes?: number
  }
}

const JSON_TYPE = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/**
 * A body must be uncompressed JSON in UTF-8, or one of the `bodyTypes` of the route. Otherwise the
 * check throws `UnsupportedMediaType`. Without a body the type is ignored, so that validation
 * reports the missing body.
 */
export const requireContentType: onRequestAsyncHookHandler = async (request) => {
  const { config, schema } = request.routeOptions
  if (schema?.body === undefined && config.bodyTypes === undefined) return
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  const isRight = config.bodyTypes?.includes(mediaTypeOf(type)) ?? JSON_TYPE.test(type.trim())
  if (isRight && encoding.toLowerCase() === 'identity') return
  if (!(await isEmptyBody(request.raw))) throw new GatewayError('UnsupportedMediaType')
  delete request.headers['content-type']
}

/** The type without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}
