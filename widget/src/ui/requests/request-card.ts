import type { AgentRequest } from '../../vocabulary/types.ts'
import { box, element, icon, showText } from '../elements/elements.ts'
import type { PanelParts } from '../panel/panel-parts.ts'
import { createNavigationSteps } from './navigation-steps.ts'
import requestsCss from './requests.css?inline'
import { createScreenshotSteps } from './screenshot-steps.ts'

export { reportArrivals } from './navigation-steps.ts'

export const styles: string = requestsCss

const compassIcon = 'M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Z M15.5 8.5l-2 5-5 2 2-5 5-2Z'
const cameraIcon =
  'M4.5 8h3l1.5-2.5h6L16.5 8h3A1.5 1.5 0 0 1 21 9.5v8a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 17.5v-8A1.5 1.5 0 0 1 4.5 8Z M12 10a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6Z'

export type RequestCard = ReturnType<typeof createRequestCard>

/** Shows an explanation, a countdown and the buttons of the visitor's answer. */
export function createRequestCard(first: AgentRequest, parts: PanelParts, agentName: string) {
  const { texts } = parts
  const titleId = `request-${first.id}`
  const isNavigation = first.kind === 'navigation'
  const title = isNavigation ? texts.navigationTitle(agentName) : texts.screenshotTitle(agentName)
  const problem = element('p', { class: 'field-problem', role: 'alert', hidden: true })
  const timer = element('span', { class: 'expiry', role: 'timer' })
  const deps = { ...parts, showProblem: (text: string | undefined) => showText(problem, text) }
  const steps = isNavigation
    ? createNavigationSteps(first, deps)
    : createScreenshotSteps(first, deps, (isBusy) => timer.classList.toggle('visually-hidden', isBusy))
  const card = element(
    'section',
    { class: 'request', 'aria-labelledby': titleId },
    box('request-head', icon(isNavigation ? compassIcon : cameraIcon), element('h3', { id: titleId }, title), timer),
    steps.element,
    problem,
  )
  let current = first
  const ticking = setInterval(showTime, 1_000)
  showTime()

  return {
    id: first.id,
    element: card,
    update(request: AgentRequest) {
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
}
