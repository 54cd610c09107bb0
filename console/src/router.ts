import { computed, signal } from '@preact/signals'
import type { IconName } from './ui/page.tsx'

/** Filters of the inbox. They stand in the address of the list and of an open conversation. */
const inboxFilters = ['queue', 'tag', 'q', 'status', 'assignee', 'days'] as const

/** `path` has parameters such as `:id` or `:id?`. `query` names the parameters behind the `?`. */
const pattern = <Path extends string, Query extends string = never, Kept extends string = never>(
  path: Path,
  query: readonly Query[] = [],
  /** Parameters of the path whose change does not move the focus to the heading. */
  keepsFocus: readonly Kept[] = [],
) => ({ path, query, keepsFocus: keepsFocus as readonly string[] })

/** Every view of the console, with its address. The first pattern that fits an address counts. */
const patterns = {
  inbox: pattern('conversations', inboxFilters),
  conversation: pattern('conversations/:conversationId/:part?', [...inboxFilters, 'message']),
  installations: pattern('installations'),
  installation: pattern('installations/:siteKey/:tab?', [], ['tab']),
  leads: pattern('leads'),
  lead: pattern('leads/:leadId'),
  deliveries: pattern('deliveries', ['status', 'subscription', 'hours']),
  delivery: pattern('deliveries/:deliveryId'),
  subscriptions: pattern('subscriptions'),
  'new-subscription': pattern('subscriptions/new'),
  'new-hook': pattern('subscriptions/new-hook'),
  subscription: pattern('subscriptions/:subscriptionId'),
  changes: pattern('workspace/changes'),
  suppressions: pattern('suppressions'),
  'suppression-import': pattern('suppressions/import'),
  workspace: pattern('workspace'),
  replies: pattern('replies'),
  people: pattern('people'),
  team: pattern('team'),
  report: pattern('report'),
}

type ParamsOf<Path> = Path extends `${infer First}/${infer Rest}`
  ? ParamsOf<First> & ParamsOf<Rest>
  : Path extends `:${infer Name}?`
    ? { [Key in Name]?: string | undefined }
    : Path extends `:${infer Name}`
      ? { [Key in Name]: string }
      : unknown

type Patterns = typeof patterns
export type View = keyof Patterns
type RouteOf<Name extends View> = { view: Name } & ParamsOf<Patterns[Name]['path']> & {
    [Key in Patterns[Name]['query'][number]]?: string | undefined
  }

/** A view of the console and the parameters in its URL. */
export type KnownRoute = { [Name in View]: RouteOf<Name> }[View]
export type Route = KnownRoute | { view: 'unknown' }

export type InboxFilter = { [Name in (typeof inboxFilters)[number]]?: string | undefined }

const base = '/console'
const views = Object.entries(patterns).map(([view, { path, ...rest }]) => ({ view, parts: path.split('/'), ...rest }))
const paramOf = (part: string) => /^:(\w+)\??$/.exec(part)?.[1]

/** Parses a URL. Returns `unknown` if no view matches. */
export function parseRoute(address: string): Route {
  const { pathname, searchParams } = new URL(address, 'http://console')
  const given = pathname.slice(base.length).split('/').filter(Boolean).map(decode)
  if (given.length === 0) given.push('conversations')
  for (const { view, parts, query } of views) {
    const fits = (part: string, index: number) =>
      paramOf(part) ? part.endsWith('?') || given[index] !== undefined : part === given[index]
    if (given.length > parts.length || !parts.every(fits)) continue
    const fromPath = parts.flatMap((part, index) => (paramOf(part) ? [[paramOf(part), given[index]]] : []))
    const fromQuery = query.map((name) => [name, searchParams.get(name) || undefined])
    return { view, ...Object.fromEntries([...fromPath, ...fromQuery]) }
  }
  return { view: 'unknown' }
}

export function pathOf(route: KnownRoute) {
  const { path, query } = patterns[route.view]
  const params = route as unknown as Record<string, string | undefined>
  const parts = path.split('/').map((part) => {
    const name = paramOf(part)
    return name ? params[name] && encodeURIComponent(params[name]) : part
  })
  const search = new URLSearchParams(query.flatMap((name) => (params[name] ? [[name, params[name]]] : [])))
  return [base, ...parts.filter(Boolean)].join('/') + (search.size > 0 ? `?${search}` : '')
}

/** Names what the view shows. The focus moves to its heading when the place changes. */
export function placeOf(route: Route) {
  if (route.view === 'unknown') return route.view
  const { path, keepsFocus } = patterns[route.view]
  const params = path.split('/').flatMap((part) => paramOf(part) ?? [])
  const values = params.filter((name) => !keepsFocus.includes(name)).map((name) => route[name as never])
  return [route.view, ...values].join(' ')
}

export type Router = ReturnType<typeof createRouter>

export function createRouter(window: Window) {
  const { location, history, document } = window
  const address = signal(location.href)
  /** Path that the operator wants to open, although the view has unsaved changes. */
  const held = signal<string | undefined>(undefined)
  let isHeld = false
  const pathNow = () => location.pathname + location.search
  const route = computed(() => parseRoute(address.value))
  /** The queue of an address that names none. The inbox chooses it. */
  const defaultQueue = signal<string | undefined>(undefined)
  /** The filter of the latest view of the inbox. It stays while the operator is in another area. */
  let lastFilter: InboxFilter = {}
  const named = computed((): InboxFilter => {
    const shown = route.value
    if (shown.view === 'inbox' || shown.view === 'conversation')
      lastFilter = Object.fromEntries(inboxFilters.map((name) => [name, shown[name]]))
    return lastFilter
  })
  const filter = computed((): InboxFilter => ({ ...named.value, queue: named.value.queue ?? defaultQueue.value }))

  function leave(path: string) {
    isHeld = false
    held.value = undefined
    if (path !== pathNow()) history.pushState(null, '', path)
    address.value = location.href
  }

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
    route,
    filter,
    defaultQueue,
    /** Returns the path of the inbox or of a conversation, with the present filter. */
    inFilter: (to: { conversationId?: string; part?: string; message?: string } = {}) =>
      pathOf(
        to.conversationId === undefined
          ? { view: 'inbox', ...named.value }
          : { view: 'conversation', conversationId: to.conversationId, ...named.value, ...to },
      ),
    /** Changes the filter of the inbox in the address, without a new entry in the browser's history. */
    setFilter(change: InboxFilter) {
      const shown = route.peek()
      const next = { ...named.peek(), ...change }
      const at = shown.view === 'conversation' ? { ...shown, ...next } : { view: 'inbox' as const, ...next }
      history.replaceState(null, '', pathOf(at))
      address.value = location.href
    },
    go,
    held,
    leave,
    stay() {
      held.value = undefined
    },
    /** Keeps the operator in the view until the returned function is called or the operator chooses to leave. */
    hold() {
      isHeld = true
      return () => {
        isHeld = false
      }
    },
  }
}

function decode(part: string) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * An area of the navigation. `view` is its first view and its icon. Paths below its path belong to it.
 * Phones show tabs without *More*.
 */
const area = (view: Extract<View, IconName>, name: string, key: string, isTab = false) => ({ view, name, key, isTab })

/** The areas in groups. Their names stand here only. */
export const groups = [
  {
    title: 'Chat',
    areas: [
      area('inbox', 'Inbox', 'g i', true),
      area('replies', 'Saved replies', 'g r'),
      area('report', 'Report', 'g e', true),
    ],
  },
  {
    title: 'Leads',
    areas: [
      area('leads', 'Leads', 'g l', true),
      area('deliveries', 'Deliveries', 'g d'),
      area('subscriptions', 'Destinations', 'g s'),
      area('suppressions', 'Do not contact', 'g u'),
    ],
  },
  {
    title: 'Settings',
    areas: [
      area('installations', 'Websites', 'g n', true),
      area('people', 'Personal data', 'g p'),
      area('team', 'Team', 'g t'),
      area('workspace', 'Workspace', 'g w'),
    ],
  },
]
export const areas = groups.flatMap((group) => group.areas)

export const areaOf = ({ view }: { view: View | 'unknown' }) =>
  view === 'unknown' ? undefined : areas.find((area) => patterns[view].path.split('/')[0] === patterns[area.view].path)

export const areaName = (view: View) => areaOf({ view })!.name

export const backTo = (view: View) => ({ path: pathOf({ view } as KnownRoute), label: areaName(view) })
