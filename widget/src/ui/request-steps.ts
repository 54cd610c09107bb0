import type { ServiceClient } from '../client.ts'
import { element } from './elements.ts'
import type { ChatTexts, RequestTexts } from './texts.ts'

export interface RequestStepsDeps {
  client: ServiceClient
  texts: ChatTexts & RequestTexts
  /** Shows the text of a problem. Undefined removes the problem. */
  showProblem(text: string | undefined): void
}

/** Returns the text for a failed answer. `other` is the text for codes without a text of their own. */
export function problemOf(
  code: string,
  { requestProblems, requestResolved }: RequestStepsDeps['texts'],
  other: string,
): string {
  if (code === 'CommandExpired') return requestProblems.expired
  return code === 'CommandAlreadyResolved' || code === 'request_unknown' ? requestResolved : other
}

export function actions(...buttons: Node[]): HTMLElement {
  return element('div', { class: 'actions' }, ...buttons)
}

export function button(kind: 'primary' | 'secondary' | 'quiet', text: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', { class: kind, type: 'button' }, text)
  made.addEventListener('click', onClick)
  return made
}
