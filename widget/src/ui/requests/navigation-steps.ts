import type { ServiceClient } from '../../client/client.ts'
import type { AgentRequest } from '../../vocabulary/types.ts'
import { box, button, element } from '../elements/elements.ts'
import { problemOf, type RequestStepsDeps } from './request-steps.ts'

/** Creates the step of a navigation request: shows the target and asks whether to go there. */
export function createNavigationSteps(
  { id, url = '', label }: AgentRequest,
  { client, texts, showProblem }: RequestStepsDeps,
) {
  const target = new URL(url)
  const isElsewhere = target.origin !== location.origin
  const where = element('p', { class: 'target' }, ...(label ? [element('bdi', { class: 'target-label' }, label)] : []))
  // Always left to right, with a whole host, so that the visitor can recognise the site.
  const path = target.pathname === '/' ? '' : target.pathname
  where.append(element('span', { class: 'target-url', dir: 'ltr' }, element('b', {}, target.host), path))
  const note = element(
    'p',
    { class: 'note' },
    isElsewhere ? texts.leavesSite(`\u2068${target.host}\u2069`) : texts.opensPage,
  )
  const buttons = box(
    'actions',
    button('primary', texts.goToPage, () =>
      answer(() => leaveFor(client, client.requests().find((one) => one.id === id)!)),
    ),
    button('quiet', texts.noThanks, () => answer(() => client.acknowledgeNavigation(id, 'declined'))),
  )

  return {
    element: box('request-body step', where, note, buttons),
    update({ state }: AgentRequest) {
      if (state === 'accepted') note.textContent = texts.opening
      buttons.hidden = state === 'accepted'
    },
    dispose() {},
  }

  async function answer(act: () => Promise<unknown>) {
    if (buttons.getAttribute('aria-busy') === 'true') return
    buttons.setAttribute('aria-busy', 'true')
    showProblem(undefined)
    await act().catch((error) => showProblem(problemOf(error, texts, texts.requestProblems.notAnswered)))
    buttons.setAttribute('aria-busy', 'false')
  }
}

/** The navigation has failed if this page is still shown after this time. */
const leavesWithinMs = 30_000
const looksAgainMs = 1_000

type Navigation = Pick<ServiceClient, 'requests' | 'acknowledgeNavigation' | 'dismissRequest'>

/** Reports `accepted` before it navigates. The next page reports whether that succeeded. */
async function leaveFor(client: Navigation, { id, url = '' }: AgentRequest) {
  await client.acknowledgeNavigation(id, 'accepted')
  // The request ended while the report was being sent, or the visitor has changed.
  if (!client.requests().some((one) => one.id === id)) return
  const from = location.href
  location.assign(url)
  const deadline = Date.now() + leavesWithinMs
  const look = () => {
    if (!client.requests().some((one) => one.id === id)) return
    // Only the fragment has changed, or the application changed the URL itself.
    const hasArrived = location.href !== from && samePage(location.href, url)
    if (hasArrived || Date.now() > deadline) report(client, id, hasArrived)
    else setTimeout(look, looksAgainMs)
  }
  setTimeout(look, 50)
}

/**
 * Reports whether the navigations that the visitor accepted on the previous page succeeded. A
 * redirect counts as a success. Navigations to other origins are removed without a report, because
 * this page cannot know their result.
 */
export function reportArrivals(client: Navigation) {
  for (const { id, kind, state, url = '' } of client.requests()) {
    if (kind !== 'navigation' || state !== 'accepted') continue
    if (new URL(url).origin !== location.origin) client.dismissRequest(id)
    else report(client, id, samePage(location.href, url) || wasRedirected())
  }
}

function report(client: Navigation, id: string, hasArrived: boolean) {
  client.acknowledgeNavigation(id, hasArrived ? 'completed' : 'failed').catch(() => client.dismissRequest(id))
}

function samePage(one: string, other: string) {
  const pageOf = (url: string) => {
    const { origin, pathname, search } = new URL(url)
    return origin + pathname.replace(/(\/|\/index\.html)$/, '') + search
  }
  return pageOf(one) === pageOf(other)
}

function wasRedirected() {
  const [entry] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  return entry?.type === 'navigate' && entry.redirectCount > 0
}
