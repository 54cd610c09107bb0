import type {
  PageContext as PageContextMessage,
  VisitorCredentials as VisitorCredentialsMessage,
} from '#proto/session/v1/visitor_pb.js'
import type { PageContext, VisitorCredentials } from '../sessions/model.ts'

export function fromCredentials(message: VisitorCredentialsMessage | undefined): VisitorCredentials {
  return { accessGrant: message?.accessGrant ?? '', origin: message?.origin ?? '' }
}

/** Returns a visitor's request with the credentials as the core checks them. */
export const ofVisitor = <Request extends { credentials?: VisitorCredentialsMessage }>({
  credentials,
  ...rest
}: Request) => ({ ...rest, credentials: fromCredentials(credentials) })

export function fromPageContext(message: PageContextMessage | undefined): PageContext | undefined {
  if (!message) return undefined
  const { url, title, referrer, viewport } = message
  return { url, title, referrer, viewport: viewport && { width: viewport.width, height: viewport.height } }
}
