import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

const JSON_TYPE = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/** Where there is a JSON body it says so, in UTF-8 and not compressed, else `UnsupportedMediaType`. */
export const requireJson: onRequestHookHandler = (request, _reply, done) => {
  if (request.routeOptions.schema?.body === undefined) return done()
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  const good = JSON_TYPE.test(type.trim()) && encoding.toLowerCase() === 'identity'
  done(good ? undefined : new GatewayError('UnsupportedMediaType'))
}
