import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Capabilities, Installation } from './model.ts'

export function requireCapability(
  { capabilities }: Pick<Installation, 'capabilities'>,
  capability: keyof Capabilities,
) {
  if (!capabilities[capability]) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
}
