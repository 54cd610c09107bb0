import type { PanelParts } from '../panel/panel-parts.ts'

export interface RequestStepsDeps extends PanelParts {
  showProblem(text: string | undefined): void
}

/** This part is built without the chat, so it cannot compare with the class `WidgetError`. */
export const codeOf = (error: unknown): string | undefined => (error as { code?: string }).code

/** Returns the text for a failed answer. `other` is the text for codes without a text of their own. */
export function problemOf(
  error: unknown,
  { requestProblems, requestResolved }: RequestStepsDeps['texts'],
  other: string,
): string {
  const code = codeOf(error)
  if (code === 'CommandExpired') return requestProblems.expired
  return code === 'CommandAlreadyResolved' || code === 'request_unknown' ? requestResolved : other
}
