import type { PageContext, Session, Visitor, VisitorCredentials } from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { Installation } from '../workspaces/model.ts'
import type { Consents } from './consents.ts'
import { repairPageContext } from './page-context.ts'

/** What the browser reports of a visitor besides messages: page, typing, presence and panel. */
export interface Observations {
  /**
   * Authorizes a report. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * ConsentRequired.
   */
  authorize(credentials: VisitorCredentials, capability: 'pageContext' | 'typing' | 'presence'): Promise<Visitor>
  /**
   * Returns the valid parts of the page if a new session may have it before the visitor has decided
   * on the consent policy. Otherwise `keepPage` stores it.
   */
  pageAtStart(installation: Installation, sent: PageContext | undefined): PageContext | undefined
  /**
   * Stores the valid parts of the visitor's page. Stores nothing if the installation has no page
   * context, or requires a consent that the visitor has not granted.
   */
  keepPage(sessionId: string, installation: Installation, sent: PageContext, at: Date): Promise<void>
  /** Stores that the visitor closed the panel. Errors: those of `VisitorAccess.rejectEnded`. */
  panelClosed(sessionId: string): Promise<void>
  /**
   * Stores in the background that the panel is open, because the visitor sent a message, typed or
   * sees the chat. If the write fails, the next report repeats it.
   */
  panelUsed(session: Session, by: 'message' | 'report'): void
}

/** A report may have been under way for this time in milliseconds when the panel was closed. */
const underWayMs = 1_000

export function createObservations(dependencies: {
  store: Pick<SessionStore, 'setPageContext' | 'closePanel' | 'openPanel'>
  access: Pick<VisitorAccess, 'authorize' | 'rejectEnded'>
  consents: Pick<Consents, 'require'>
  wakeups: Pick<Wakeups, 'hint'>
  settings: { pageContextMaxBytes: number }
  now: () => number
}): Observations {
  const { store, access, consents, wakeups, settings, now } = dependencies

  const validPage = ({ capabilities }: Installation, sent: PageContext) =>
    capabilities.pageContext ? repairPageContext(sent, settings.pageContextMaxBytes) : undefined

  return {
    async authorize(credentials, capability) {
      const visitor = await access.authorize(credentials)
      requireCapability(visitor.installation, capability)
      await consents.require(visitor, async () => false)
      return visitor
    },

    pageAtStart: (installation, sent) =>
      sent && !installation.consent?.required ? validPage(installation, sent) : undefined,

    async keepPage(sessionId, installation, sent, at) {
      const { consent } = installation
      const page = validPage(installation, sent)
      if (page) await store.setPageContext(sessionId, page, at, consent?.required ? consent.policyVersion : undefined)
    },

    async panelClosed(sessionId) {
      if (!(await store.closePanel(sessionId, new Date(now())))) await access.rejectEnded(sessionId)
      await wakeups.hint(sessionId)
    },

    panelUsed({ sessionId, panelClosedAt }, by) {
      const before = new Date(by === 'message' ? now() : now() - underWayMs)
      if (panelClosedAt === undefined || panelClosedAt > before) return
      const opening = store.openPanel(sessionId, before).then(() => wakeups.hint(sessionId))
      opening.catch(() => {})
    },
  }
}
