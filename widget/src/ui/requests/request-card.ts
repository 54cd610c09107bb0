import type { ServiceClient } from '../../client/client.ts'
import type { AgentRequest } from '../../vocabulary/feature-types.ts'
import { element, icon } from '../elements/elements.ts'
import type { WidgetTexts } from '../languages/en.ts'
import { createNavigationSteps } from './navigation-steps.ts'
import { cameraIcon, compassIcon } from './request-icons.ts'
import requestsCss from './requests.css?inline'
import { createScreenshotSteps } from './screenshot-steps.ts'

export { reportArrivals } from './leave.ts'

export const styles: string = requestsCss

interface RequestCardDeps {
  client: ServiceClient
  texts: WidgetTexts
  agentName: string
  conceal(isHidden: boolean): void
}

export interface RequestCard {
  id: string
  element: HTMLElement
  update(request: AgentRequest): void
  dispose(): void
}

/**
 * Creates the card of an agent's request: explanation, countdown and buttons for the visitor's
 * answer.
 */
export function createRequestCard(first: AgentRequest, deps: RequestCardDeps): RequestCard {
  const { agentName, texts } = deps
  const titleId = `request-${first.id}`
  const isNavigation = first.kind === 'navigation'
  const title = isNavigation ? texts.navigationTitle(agentName) : texts.screenshotTitle(agentName)
  const problem = element('p', { class: 'field-problem', role: 'alert', hidden: true })
  const timer = element('span', { class: 'expiry', role: 'timer' })
  const steps = isNavigation
    ? createNavigationSteps(first, { ...deps, showProblem })
    : createScreenshotSteps(first, {
        ...deps,
        showProblem,
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

  /** Shows the remaining time, rounded down to whole seconds. */
  function showTime() {
    const seconds = Math.max(0, Math.floor((current.expiresAtMs - Date.now()) / 1_000))
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    timer.textContent = current.state === 'accepted' ? '' : texts.expiresIn(time)
  }

  function showProblem(text: string | undefined) {
    problem.hidden = text === undefined
    problem.textContent = text ?? ''
  }
}
