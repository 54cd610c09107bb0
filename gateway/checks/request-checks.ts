import type { FastifyRequest } from 'fastify'
import { operationIdForm } from '../../contract/limits.ts'
import { CONTRACT_VERSION } from '../../contract/public-api.ts'
import { GatewayError } from '../errors.ts'
import { isEmptyBody } from '../http/request-body.ts'
import type { Check } from '../in-order.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types that the route accepts instead of JSON. */
    bodyTypes?: readonly string[]
    /** Whether a request without a body is validated like `{}`. */
    bodyOptional?: boolean
    /** The limit of the body. Default: that of JSON bodies. */
    bodyMaxBytes?: number
    /** Whether an `Idempotency-Key` is required (`true`) or checked if present (`optional`). Unset: ignored. */
    idempotent?: boolean | 'optional'
    /** Name of the body field that must be equal to the `Idempotency-Key`. */
    keyField?: string
  }
}

export const requireVersion: Check = (request) => {
  const version = request.headers['x-service-widget-version']
  if (version !== CONTRACT_VERSION) throw new GatewayError('WidgetVersionUnsupported')
}

const CREDENTIAL_NAMES = new Set(['grant', 'access_token', 'token', 'authorization', 'renewaltoken', 'assertion'])

/** Throws `CredentialInUrl`, because logs and browser histories store URLs. */
export const refuseUrlCredentials: Check = (request) => {
  for (const name of Object.keys(request.query as object)) {
    if (CREDENTIAL_NAMES.has(name.toLowerCase())) throw new GatewayError('CredentialInUrl')
  }
}

/** Sets the headers of answers that only pages of this host read, and that nothing stores. */
export const keepPrivate: Check = (_request, reply) =>
  void reply.header('cache-control', 'no-store').header('cross-origin-resource-policy', 'same-origin')

/**
 * Throws `PermissionDenied` for a page of another host. This is a second protection: such a page has no
 * session to send, and cannot read the answer without CORS headers.
 */
export const requireSameOrigin: Check = (request) => {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isForeign = site !== undefined && site !== 'same-origin'
  const isOwn = origin === undefined || URL.parse(origin)?.host.toLowerCase() === request.host.toLowerCase()
  if (isForeign || !isOwn) throw new GatewayError('PermissionDenied')
}

const JSON_TYPE = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/**
 * A body must be uncompressed JSON in UTF-8, or one of the route's `bodyTypes`. Without a body the type is
 * ignored, so that validation reports the missing body.
 */
export const requireContentType: Check = (request) => {
  const { config, schema } = request.routeOptions
  if (schema?.body === undefined && config.bodyTypes === undefined) return
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  const isRight = config.bodyTypes?.includes(mediaTypeOf(type)) ?? JSON_TYPE.test(type.trim())
  if (isRight && encoding.toLowerCase() === 'identity') return
  return ignoreTypeOfEmptyBody(request)
}

async function ignoreTypeOfEmptyBody({ raw, headers }: FastifyRequest) {
  if (!(await isEmptyBody(raw))) throw new GatewayError('UnsupportedMediaType')
  delete headers['content-type']
}

export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}

export const requireIdempotencyKey: Check = (request) => {
  const { idempotent } = request.routeOptions.config
  const needed = idempotent === true || (idempotent === 'optional' && request.headers['idempotency-key'] !== undefined)
  if (needed && !operationIdForm.test(idempotencyKeyOf(request))) throw new GatewayError('IdempotencyKeyInvalid')
}

export const requireMatchingKey: Check = (request) => {
  const { keyField } = request.routeOptions.config
  if (keyField && (request.body as Record<string, unknown>)[keyField] !== idempotencyKeyOf(request))
    throw new GatewayError('IdempotencyKeyMismatch')
}

export function idempotencyKeyOf(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  return typeof key === 'string' ? key : ''
}
