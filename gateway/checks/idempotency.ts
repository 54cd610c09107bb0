import type { FastifyRequest, onRequestHookHandler, preHandlerHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route has side effects: it needs an `Idempotency-Key`, or takes one. */
    idempotent?: boolean | 'optional'
    /** Field of the body that must equal the key. */
    keyField?: string
  }
}

const KEY = /^[A-Za-z0-9._:-]{1,128}$/

/** Where the route needs an `Idempotency-Key` it is there and well formed, else `IdempotencyKeyInvalid`. */
export const requireIdempotencyKey: onRequestHookHandler = (request, _reply, done) => {
  const { idempotent } = request.routeOptions.config
  const needed = idempotent === true || (idempotent === 'optional' && request.headers['idempotency-key'] !== undefined)
  done(needed && !KEY.test(idempotencyKeyOf(request)) ? new GatewayError('IdempotencyKeyInvalid') : undefined)
}

/** Where a field of the body names the operation it is the key, else `IdempotencyKeyMismatch`. */
export const requireMatchingKey: preHandlerHookHandler = (request, _reply, done) => {
  const { keyField } = request.routeOptions.config
  const matches =
    keyField === undefined || (request.body as Record<string, unknown>)[keyField] === idempotencyKeyOf(request)
  done(matches ? undefined : new GatewayError('IdempotencyKeyMismatch'))
}

/** The request's key; checked on routes that need one. */
export function idempotencyKeyOf(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  return typeof key === 'string' ? key : ''
}
