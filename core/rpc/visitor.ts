import type {
  PageContext as PageContextMessage,
  VisitorCredentials as VisitorCredentialsMessage,
} from '#proto/session/v1/visitor_pb.js'
import type { PageContext, VisitorCredentials } from '../sessions/model.ts'

export function fromCredentials(message: VisitorCredentialsMessage | undefined): VisitorCredentials {
  return { accessGrant: message?.accessGrant ?? '', origin: message?.origin ?? '' }
}

export function fromPageContext(message: PageContextMessage | undefined): PageContext | undefined {
  if (!message) return undefined
  const { url, title, referrer, viewport } = message
  return {
    url,
    title,
    referrer,
    viewport: viewport && { width: viewport.width, height: viewport.height },
  }
}
