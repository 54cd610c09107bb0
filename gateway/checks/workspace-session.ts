import type { FastifyRequest } from 'fastify'
import { decodeJwt } from 'jose'
import { GatewayError } from '../errors.ts'

const AUDIENCE = 'service.workspace'
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i

/**
 * `Authorization` of an operator's request, as it is passed on to a core, which alone has the keys to verify it. What is
 * no workspace session at all, a service token among them, gets no further: `Unauthenticated`.
 */
export function operatorAuthorization({ headers }: FastifyRequest): string {
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
