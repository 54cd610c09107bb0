import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

export const CONTRACT = 'service.widget.public-api'
export const CONTRACT_VERSION = '1.0'

/** Rejects other versions of the contract with `WidgetVersionUnsupported`. */
export const requireVersion: onRequestHookHandler = (request, _reply, done) => {
  const version = request.headers['x-service-widget-version']
  done(version === CONTRACT_VERSION ? undefined : new GatewayError('WidgetVersionUnsupported'))
}
