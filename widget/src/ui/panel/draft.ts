import type { ServiceClient } from '../../client/client.ts'
import type { Panel } from './panel.ts'

/** Keeps the text of the field while no panel shows it. The page must not replace the visitor's text. */
export function createDraft(client: ServiceClient, panel: () => Panel | undefined) {
  let kept = ''
  let prefilled = ''

  return {
    prefilled: () => prefilled,
    text: () => (kept !== prefilled && kept) || client.draft() || kept,

    keep(text: string) {
      kept = text
    },

    restore() {
      kept = client.draft()
      panel()?.setDraft(kept)
    },

    /** Writes into the message field, unless it has text that the visitor has written. */
    prefill(text: string) {
      const current = panel()?.draft() ?? (kept || client.draft())
      const isWritten = current !== '' && current !== prefilled
      prefilled = text
      if (isWritten) return
      kept = text
      panel()?.setDraft(text)
      // Before the session is resumed, a stored draft of the visitor must stay.
      if (client.session()) client.setDraft(text)
    },
  }
}
