import type { ConnectError } from '@connectrpc/connect'
import { type ErrorInfo, ErrorInfoSchema } from '#proto/error/v1/error_pb.js'

/** What a core said when it said it with the public table's detail. */
export function errorInfoOf(error: ConnectError): ErrorInfo | undefined {
  return error.findDetails(ErrorInfoSchema)[0]
}
