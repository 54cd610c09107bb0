import type { ServiceClient } from '../../client/client.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'

export interface PanelParts {
  client: ServiceClient
  texts: WidgetTexts
  dates: Dates
  announce(text: string): void
  conceal(isHidden: boolean): void
}
