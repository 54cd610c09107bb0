import type { ConnectError } from '@connectrpc/connect'
import { type ErrorInfo, ErrorInfoSchema } from '#proto/error/v1/error_pb.js'

export function errorInfoOf(error: ConnectError): ErrorInfo | undefined {
  return error.findDetails(ErrorInfoSchema)[0]
}
