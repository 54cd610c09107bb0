import type { Core } from '../core.ts'
import type { PageContext, Session, Visitor, VisitorCredentials } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type Installation, requireCapability } from '../workspaces/model.ts'
import { requireConsent } from './consents.ts'
import { repairPageContext } from './page-context.ts'

/** A report may have been under way for this time in milliseconds when the panel was closed. */
const underWayMs = 1_000

/**
 * Authorizes a report. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
 * ConsentRequired.
 */
export async function authorizeReport(
  core: Core,
  credentials: VisitorCredentials,
  capability: 'pageContext' | 'typing' | 'presence',
): Promise<Visitor> {
  const visitor = await visitorAccessOf(core).authorize(credentials)
  requireCapability(visitor.installation, capability)
  await requireConsent(core, visitor, async () => false)
  return visitor
}

/**
 * Returns the valid parts of the page if a new session may have it before the visitor has decided
 * on the consent policy. Otherwise `keepPage` stores it.
 */
export const pageAtStart = (
  core: Core,
  installation: Installation,
  sent: PageContext | undefined,
): PageContext | undefined =>
  sent && !installation.consent?.required ? validPage(core, installation, sent) : undefined

/**
 * Stores the valid parts of the visitor's page. Stores nothing if the installation has no page
 * context, or requires a consent that the visitor has not granted.
 */
export async function keepPage(core: Core, sessionId: string, installation: Installation, sent: PageContext, at: Date) {
  const { consent } = installation
  const page = validPage(core, installation, sent)
  if (page)
    await sessionStoreOf(core).setPageContext(
      sessionId,
      page,
      at,
      consent?.required ? consent.policyVersion : undefined,
    )
}

/** Stores that the visitor closed the panel. Errors: those of `VisitorAccess.rejectEnded`. */
export async function closePanel(core: Core, sessionId: string) {
  if (!(await sessionStoreOf(core).closePanel(sessionId, new Date(core.now()))))
    await visitorAccessOf(core).rejectEnded(sessionId)
  await wakeupsOf(core).hint(sessionId)
}

/**
 * Stores in the background that the panel is open, because the visitor sent a message, typed or
 * sees the chat. If the write fails, the next report repeats it.
 */
export function notePanelUse(core: Core, { sessionId, panelClosedAt }: Session, by: 'message' | 'report') {
  const before = new Date(by === 'message' ? core.now() : core.now() - underWayMs)
  if (panelClosedAt === undefined || panelClosedAt > before) return
  const opening = sessionStoreOf(core)
    .openPanel(sessionId, before)
    .then(() => wakeupsOf(core).hint(sessionId))
  opening.catch(() => {})
}

const validPage = (core: Core, { capabilities }: Installation, sent: PageContext) =>
  capabilities.pageContext ? repairPageContext(sent, core.config.PAGE_CONTEXT_MAX_BYTES) : undefined
