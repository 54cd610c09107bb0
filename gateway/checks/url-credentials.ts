import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

const CREDENTIAL_NAMES = new Set(['grant', 'access_token', 'token', 'authorization', 'renewaltoken', 'assertion'])

/** No credential is in the URL, where logs and histories keep it, else `CredentialInUrl`. */
export const refuseUrlCredentials: onRequestHookHandler = (request, _reply, done) => {
  const names = Object.keys(request.query as object)
  const found = names.some((name) => CREDENTIAL_NAMES.has(name.toLowerCase()))
  done(found ? new GatewayError('CredentialInUrl') : undefined)
}
