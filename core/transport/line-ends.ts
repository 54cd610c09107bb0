import type { Interceptor } from '@connectrpc/connect'
import { useLineFeedsIn } from '../../contract/line-ends.ts'

export const lineEndsInterceptor: Interceptor = (next) => (request) => {
  if (!request.stream) useLineFeedsIn(request.message)
  return next(request)
}
