import { computed, signal } from '@preact/signals'

/** A view of the console and the parameters in its URL. */
export type Route =
  | { view: 'inbox' }
  | { view: 'conversation'; conversationId: string; details: boolean; message?: number }
  | { view: 'installations' }
  | { view: 'installation'; siteKey: string; tab?: string }
  | { view: 'leads' }
  | { view: 'lead'; leadId: string }
  | { view: 'deliveries'; status?: string; subscriptionId?: string; withinHours?: string }
  | { view: 'delivery'; deliveryId: string }
  | { view: 'subscriptions' }
  | { view: 'new-subscription' }
  | { view: 'new-hook' }
  | { view: 'subscription'; subscriptionId: string }
  | { view: 'changes'; target?: string }
  | { view: 'suppressions' }
  | { view: 'suppression-import' }
  | { view: 'workspace' }
  | { view: 'replies' }
  | { view: 'people' }
  | { view: 'report' }
  | { view: 'unknown' }

const base = '/console'

/** Parses a URL. Returns `unknown` if no view matches. */
export function parseRoute(address: string): Route {
  const { pathname, searchParams } = new URL(address, 'http://console')
  const [area = '', id, more] = pathname.slice(base.length).split('/').filter(Boolean).map(decode)
  switch (area) {
    case '':
    case 'conversations':
      return id === undefined
        ? { view: 'inbox' }
        : {
            view: 'conversation',
            conversationId: id,
            details: more === 'details',
            message: Number(searchParams.get('message')) || undefined,
          }
    case 'installations':
      return id === undefined ? { view: 'installations' } : { view: 'installation', siteKey: id, tab: more }
    case 'leads':
      return id === undefined ? { view: 'leads' } : { view: 'lead', leadId: id }
    case 'deliveries': {
      if (id !== undefined) return { view: 'delivery', deliveryId: id }
      const status = searchParams.get('status')
      const subscriptionId = searchParams.get('subscription')
      const withinHours = searchParams.get('hours')
      return {
        view: 'deliveries',
        status: status ?? undefined,
        subscriptionId: subscriptionId ?? undefined,
        withinHours: withinHours ?? undefined,
      }
    }
    case 'subscriptions':
      if (id === undefined) return { view: 'subscriptions' }
      if (id === 'new') return { view: 'new-subscription' }
      return id === 'new-hook' ? { view: 'new-hook' } : { view: 'subscription', subscriptionId: id }
    case 'changes':
      return { view: 'changes', target: id }
    case 'suppressions':
      return { view: id === 'import' ? 'suppression-import' : id === undefined ? 'suppressions' : 'unknown' }
    case 'workspace':
    case 'replies':
    case 'people':
    case 'report':
      return { view: id === undefined ? area : 'unknown' }
    default:
      return { view: 'unknown' }
  }
}

/** Returns the path of a route. */
export function pathOf(route: Exclude<Route, { view: 'unknown' }>): string {
  switch (route.view) {
    case 'inbox':
      return `${base}/conversations`
    case 'conversation':
      return [
        `${base}/conversations/${encodeURIComponent(route.conversationId)}`,
        route.details ? '/details' : '',
        route.message === undefined ? '' : `?message=${route.message}`,
      ].join('')
    case 'installation':
      return `${base}/installations/${encodeURIComponent(route.siteKey)}${route.tab ? `/${route.tab}` : ''}`
    case 'lead':
      return `${base}/leads/${encodeURIComponent(route.leadId)}`
    case 'delivery':
      return `${base}/deliveries/${encodeURIComponent(route.deliveryId)}`
    case 'subscription':
      return `${base}/subscriptions/${encodeURIComponent(route.subscriptionId)}`
    case 'new-subscription':
      return `${base}/subscriptions/new`
    case 'new-hook':
      return `${base}/subscriptions/new-hook`
    case 'changes':
      return `${base}/changes${route.target === undefined ? '' : `/${encodeURIComponent(route.target)}`}`
    case 'suppression-import':
      return `${base}/suppressions/import`
    case 'deliveries': {
      const query = new URLSearchParams()
      if (route.status) query.set('status', route.status)
      if (route.subscriptionId) query.set('subscription', route.subscriptionId)
      if (route.withinHours) query.set('hours', route.withinHours)
      return `${base}/deliveries${query.size > 0 ? `?${query}` : ''}`
    }
    default:
      return `${base}/${route.view}`
  }
}

export const conversationPath = (conversationId: string) =>
  pathOf({ view: 'conversation', conversationId, details: false })

export type Router = ReturnType<typeof createRouter>

/**
 * Creates a router on the History API. Links within the console change the route without a page
 * load.
 */
export function createRouter(window: Window) {
  const { location, history, document } = window
  const address = signal(location.href)
  /** Path that the operator wants to open, although the view has unsaved changes. */
  const held = signal<string | undefined>(undefined)
  let isHeld = false
  const pathNow = () => location.pathname + location.search

  function leave(path: string) {
    isHeld = false
    held.value = undefined
    if (path !== pathNow()) history.pushState(null, '', path)
    address.value = location.href
  }

  /** Navigates to a path of the console. */
  function go(path: string) {
    if (isHeld && path !== pathNow()) held.value = path
    else leave(path)
  }

  /** The browser has already changed the address, so a held view puts it back. */
  function read() {
    const path = pathNow()
    if (isHeld) history.pushState(null, '', address.peek())
    go(path)
  }

  function follow(event: MouseEvent) {
    const { defaultPrevented, button, metaKey, ctrlKey, shiftKey, altKey } = event
    if (defaultPrevented || button !== 0 || metaKey || ctrlKey || shiftKey || altKey) return
    const link = (event.target as Element).closest?.('a[href]') as HTMLAnchorElement | null
    if (!link || link.target || link.origin !== location.origin || !link.pathname.startsWith(`${base}/`)) return
    event.preventDefault()
    go(link.pathname + link.search)
  }

  window.addEventListener('popstate', read)
  window.addEventListener('beforeunload', (event) => {
    if (isHeld) event.preventDefault()
  })
  document.addEventListener('click', follow)
  return {
    route: computed(() => parseRoute(address.value)),
    go,
    held,
    leave,
    stay() {
      held.value = undefined
    },
    /**
     * Keeps the operator in the current view until the returned function is called or the operator
     * chooses to leave.
     */
    hold() {
      isHeld = true
      return () => {
        isHeld = false
      }
    },
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
