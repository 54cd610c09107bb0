import { type ReadonlySignal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext, useLayoutEffect } from 'preact/hooks'
import type { Alerts } from './alerts/alerts.ts'
import type { Api } from './api.ts'
import type { Drafts, Outbox } from './conversation/composer/outbox.ts'
import type { Inbox } from './inbox/inbox.ts'
import type { Router } from './router.ts'
import type { SessionHolder, WorkspaceSession } from './session.ts'
import type { Shortcuts } from './shortcuts.ts'

/** Objects that all views of a signed-in operator share. */
export interface Console {
  session: WorkspaceSession
  holder: SessionHolder
  api: Api
  router: Router
  inbox: Inbox
  drafts: Drafts
  outbox: Outbox
  announcer: Announcer
  shortcuts: Shortcuts
  alerts: Alerts
  /** Names of the colleagues who look at the shown conversation. */
  others: ReadonlySignal<readonly string[]>
}

export type Announcer = ReturnType<typeof createAnnouncer>

/** Holds the text of a polite live region, which screen readers announce. */
export function createAnnouncer() {
  const text = signal('')
  return {
    text,
    say(next: string) {
      // Screen readers do not announce an unchanged text, so a repeated text gets a trailing space.
      text.value = text.value === next ? `${next}\u00a0` : next
    },
  }
}

/** Every view of a signed-in operator is below a provider of it. */
export const ConsoleContext = createContext<Console>(undefined as never)

export const useConsole = () => useContext(ConsoleContext)

/** Binds single keys while a component is shown. The cleanup of `useEffect` runs later: its keys would act on a component that is gone. */
export function useShortcuts(keys: Record<string, () => void>) {
  const { shortcuts } = useConsole()
  useLayoutEffect(() => shortcuts.bind(keys))
}
