import type { Interceptor } from '@connectrpc/connect'
import { useLineFeedsIn } from '../../contract/line-ends.ts'

/** Converts the line ends of the texts in each request, so that features see LF only. */
export const lineEndsInterceptor: Interceptor = (next) => (request) => {
  if (!request.stream) useLineFeedsIn(request.message)
  return next(request)
}
