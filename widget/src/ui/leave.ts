import type { ServiceClient } from '../client.ts'
import type { AgentRequest } from '../types.ts'

/** An address that a page does not even begin to load is not coming any more. */
const leavesWithinMs = 30_000
const looksAgainMs = 1_000

type Navigation = Pick<ServiceClient, 'requests' | 'acknowledgeNavigation' | 'dismissRequest'>

/**
 * Goes where the visitor agreed to go: the service knows of the consent before the page is left, and of the arrival from the
 * page after. Rejects where the answer did not get through; nothing is left then.
 */
export async function leaveFor(client: Navigation, { id, url = '' }: AgentRequest) {
  await client.acknowledgeNavigation(id, 'accepted')
  // The request has ended or the visitor has changed: this one did not accept it.
  if (!client.requests().some((one) => one.id === id)) return
  const from = location.href
  location.assign(url)
  const deadline = Date.now() + leavesWithinMs
  const look = () => {
    if (!client.requests().some((one) => one.id === id)) return
    // The application took the navigation over, or only the fragment is another.
    const hasArrived = location.href !== from && samePage(location.href, url)
    if (hasArrived || Date.now() > deadline) report(client, id, hasArrived)
    else setTimeout(look, looksAgainMs)
  }
  setTimeout(look, 50)
}

/**
 * On the page after: tells that the visitor arrived. What another site shows cannot be known here, so nothing is told of it. A
 * redirect on the way is the site's own idea of where that page is.
 */
export function settleArrivals(client: Navigation) {
  for (const { id, kind, state, url = '' } of client.requests()) {
    if (kind !== 'navigation' || state !== 'accepted') continue
    if (new URL(url).origin !== location.origin) client.dismissRequest(id)
    else report(client, id, samePage(location.href, url) || wasRedirected())
  }
}

function report(client: Navigation, id: string, hasArrived: boolean) {
  client.acknowledgeNavigation(id, hasArrived ? 'completed' : 'failed').catch(() => client.dismissRequest(id))
}

function samePage(one: string, other: string): boolean {
  const pageOf = (url: string) => {
    const { origin, pathname, search } = new URL(url)
    return origin + pathname.replace(/(\/|\/index\.html)$/, '') + search
  }
  return pageOf(one) === pageOf(other)
}

function wasRedirected(): boolean {
  const [entry] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  return entry?.type === 'navigate' && entry.redirectCount > 0
}
