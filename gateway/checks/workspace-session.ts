import type { FastifyRequest } from 'fastify'
import { decodeJwt } from 'jose'
import { GatewayError } from '../errors.ts'

const AUDIENCE = 'service.workspace'
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i

/**
 * Returns the `Authorization` header to forward to a core. Only the core has the keys to verify it.
 * Throws `Unauthenticated` if the header does not contain a workspace session, for example if it
 * contains a service token.
 */
export function operatorAuthorization({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const token = BEARER.exec(headers.authorization ?? '')?.[1]
  if (token === undefined || !isForWorkspaces(token)) throw new GatewayError('Unauthenticated')
  return `Bearer ${token}`
}

function isForWorkspaces(token: string): boolean {
  try {
    return [decodeJwt(token).aud].flat().includes(AUDIENCE)
  } catch {
    return false
  }
}
