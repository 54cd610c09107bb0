import type { ServiceClient } from '../client.ts'
import { toWidgetError } from '../errors.ts'
import type { AgentRequest } from '../types.ts'
import actionsCss from './actions.css?inline'
import { element, icon } from './elements.ts'
import { leaveFor } from './leave.ts'
import { englishRequestTexts } from './locales/en-requests.ts'
import { cameraIcon, compassIcon } from './request-icons.ts'
import requestsCss from './requests.css?inline'
import { createScreenshotSteps } from './screenshot-steps.ts'
import type { ChatTexts, RequestTexts, ShownTexts } from './texts.ts'

export { settleArrivals } from './leave.ts'
export { englishRequestTexts }

export const requestStyles = [actionsCss, requestsCss]

export interface RequestCardDeps {
  client: ServiceClient
  texts: ShownTexts
  agentName: string
  conceal(isHidden: boolean): void
}

export interface RequestStepsDeps {
  client: ServiceClient
  texts: ChatTexts & RequestTexts
  /** Shows or clears a problem. */
  tell(text: string | undefined): void
}

export interface RequestCard {
  id: string
  element: HTMLElement
  update(request: AgentRequest): void
  dispose(): void
}

/** One request of an agent: explanation, countdown and answers. */
export function createRequestCard(first: AgentRequest, deps: RequestCardDeps): RequestCard {
  const { agentName } = deps
  const texts = { ...englishRequestTexts, ...deps.texts }
  const titleId = `request-${first.id}`
  const isNavigation = first.kind === 'navigation'
  const title = isNavigation ? texts.navigationTitle(agentName) : texts.screenshotTitle(agentName)
  const problem = element('p', { class: 'field-problem', role: 'alert', hidden: true })
  const timer = element('span', { class: 'expiry', role: 'timer' })
  const steps = isNavigation
    ? navigationSteps(first, { client: deps.client, texts, tell })
    : createScreenshotSteps(first, {
        ...deps,
        texts,
        tell,
        onBusy: (isBusy) => timer.classList.toggle('visually-hidden', isBusy),
      })
  const card = element(
    'section',
    { class: 'request', 'aria-labelledby': titleId },
    element(
      'div',
      { class: 'request-head' },
      icon(isNavigation ? compassIcon : cameraIcon),
      element('h3', { id: titleId }, title),
      timer,
    ),
    steps.element,
    problem,
  )
  let current = first
  const ticking = setInterval(showTime, 1_000)
  showTime()

  return {
    id: first.id,
    element: card,
    update(request) {
      current = request
      steps.update(request)
      showTime()
    },
    dispose() {
      clearInterval(ticking)
      steps.dispose()
    },
  }

  /** Rounded down: never more than there is. */
  function showTime() {
    const seconds = Math.max(0, Math.floor((current.expiresAtMs - Date.now()) / 1_000))
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    timer.textContent = current.state === 'accepted' ? '' : texts.expiresIn(time)
  }

  function tell(text: string | undefined) {
    problem.hidden = text === undefined
    problem.textContent = text ?? ''
  }
}

function navigationSteps({ id, url = '', label }: AgentRequest, { client, texts, tell }: RequestStepsDeps) {
  const target = new URL(url)
  const isElsewhere = target.origin !== location.origin
  const go = element('button', { class: 'primary', type: 'button' }, texts.goToPage)
  const stay = element('button', { class: 'quiet', type: 'button' }, texts.noThanks)
  const where = element('p', { class: 'target' }, ...(label ? [element('bdi', { class: 'target-label' }, label)] : []))
  // A URL is always left to right, and its host is never cut off.
  const path = target.pathname === '/' ? '' : target.pathname
  where.append(element('span', { class: 'target-url', dir: 'ltr' }, element('b', {}, target.host), path))
  const note = element(
    'p',
    { class: 'note' },
    isElsewhere ? texts.leavesSite(`\u2068${target.host}\u2069`) : texts.opensPage,
  )
  go.addEventListener('click', () => {
    void answer(() => leaveFor(client, client.requests().find((one) => one.id === id)!))
  })
  stay.addEventListener('click', () => void answer(() => client.acknowledgeNavigation(id, 'declined')))
  const actions = element('div', { class: 'actions' }, go, stay)

  return { element: element('div', { class: 'request-body step' }, where, note, actions), update, dispose() {} }

  function update({ state }: AgentRequest) {
    if (state === 'accepted') note.textContent = texts.opening
    actions.hidden = state === 'accepted'
  }

  async function answer(act: () => Promise<unknown>) {
    if (actions.getAttribute('aria-busy') === 'true') return
    actions.setAttribute('aria-busy', 'true')
    tell(undefined)
    await act().catch((error) => tell(problemOf(toWidgetError(error).code, texts, texts.requestProblems.notAnswered)))
    actions.setAttribute('aria-busy', 'false')
  }
}

export function problemOf(
  code: string,
  { requestProblems, requestResolved }: RequestStepsDeps['texts'],
  other: string,
): string {
  if (code === 'CommandExpired') return requestProblems.expired
  return code === 'CommandAlreadyResolved' || code === 'request_unknown' ? requestResolved : other
}
