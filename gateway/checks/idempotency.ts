import type { FastifyRequest, onRequestHookHandler, preHandlerHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route needs an `Idempotency-Key`, or accepts one. */
    idempotent?: boolean | 'optional'
    /** Field of the body that must equal the key. */
    keyField?: string
  }
}

const KEY = /^[A-Za-z0-9._:-]{1,128}$/

/** Rejects a missing or malformed `Idempotency-Key` with `IdempotencyKeyInvalid`. */
export const requireIdempotencyKey: onRequestHookHandler = (request, _reply, done) => {
  const { idempotent } = request.routeOptions.config
  const needed = idempotent === true || (idempotent === 'optional' && request.headers['idempotency-key'] !== undefined)
  done(needed && !KEY.test(idempotencyKeyOf(request)) ? new GatewayError('IdempotencyKeyInvalid') : undefined)
}

/** Rejects a body whose `keyField` differs from the key with `IdempotencyKeyMismatch`. */
export const requireMatchingKey: preHandlerHookHandler = (request, _reply, done) => {
  const { keyField } = request.routeOptions.config
  const matches =
    keyField === undefined || (request.body as Record<string, unknown>)[keyField] === idempotencyKeyOf(request)
  done(matches ? undefined : new GatewayError('IdempotencyKeyMismatch'))
}

/** Returns the key of the request, or an empty string. */
export function idempotencyKeyOf(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  return typeof key === 'string' ? key : ''
}
