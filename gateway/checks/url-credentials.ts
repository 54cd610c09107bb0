import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

const CREDENTIAL_NAMES = new Set(['grant', 'access_token', 'token', 'authorization', 'renewaltoken', 'assertion'])

/** Rejects credentials in the URL with `CredentialInUrl`, because logs and histories store URLs. */
export const refuseUrlCredentials: onRequestHookHandler = (request, _reply, done) => {
  const names = Object.keys(request.query as object)
  const found = names.some((name) => CREDENTIAL_NAMES.has(name.toLowerCase()))
  done(found ? new GatewayError('CredentialInUrl') : undefined)
}
