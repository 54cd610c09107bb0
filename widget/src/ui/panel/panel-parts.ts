import type { ServiceClient } from '../../client/client.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'

/** What the parts of the panel share. */
export interface PanelParts {
  client: ServiceClient
  texts: WidgetTexts
  dates: Dates
  /** Announces a text to screen readers. */
  announce(text: string): void
  /** Hides the whole widget if `isHidden` is true, else shows it. */
  conceal(isHidden: boolean): void
}
