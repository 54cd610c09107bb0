import type { AgentRequest } from '../../vocabulary/feature-types.ts'
import { button, element } from '../elements/elements.ts'
import { leaveFor } from './leave.ts'
import { actions, problemOf, type RequestStepsDeps } from './request-steps.ts'

/** Creates the step of a navigation request: shows the target and asks whether to go there. */
export function createNavigationSteps(
  { id, url = '', label }: AgentRequest,
  { client, texts, showProblem }: RequestStepsDeps,
) {
  const target = new URL(url)
  const isElsewhere = target.origin !== location.origin
  const where = element('p', { class: 'target' }, ...(label ? [element('bdi', { class: 'target-label' }, label)] : []))
  // A URL is always written left to right. Its host is never truncated, so that the visitor can
  // recognise the site.
  const path = target.pathname === '/' ? '' : target.pathname
  where.append(element('span', { class: 'target-url', dir: 'ltr' }, element('b', {}, target.host), path))
  const note = element(
    'p',
    { class: 'note' },
    isElsewhere ? texts.leavesSite(`\u2068${target.host}\u2069`) : texts.opensPage,
  )
  const buttons = actions(
    button('primary', texts.goToPage, () =>
      answer(() => leaveFor(client, client.requests().find((one) => one.id === id)!)),
    ),
    button('quiet', texts.noThanks, () => answer(() => client.acknowledgeNavigation(id, 'declined'))),
  )

  return {
    element: element('div', { class: 'request-body step' }, where, note, buttons),
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
