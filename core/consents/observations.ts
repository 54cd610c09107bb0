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

/** Errors: those of VisitorAccess.authorize, RouteNotAdvertised, ConsentRequired. */
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

/** The page that a new session may have before the visitor has decided. Otherwise `keepPage` stores it. */
export const pageAtStart = (
  core: Core,
  installation: Installation,
  sent: PageContext | undefined,
): PageContext | undefined =>
  sent && !installation.consent?.required ? validPage(core, installation, sent) : undefined

/** Stores nothing if the installation has no page context, or requires a consent that is not granted. */
export async function keepPage(core: Core, sessionId: string, installation: Installation, sent: PageContext, at: Date) {
  const { consent } = installation
  const page = validPage(core, installation, sent)
  const policyVersion = consent?.required ? consent.policyVersion : undefined
  if (page) await sessionStoreOf(core).setPageContext(sessionId, page, at, policyVersion)
}

/** Stores that the panel was closed. Errors: those of `VisitorAccess.rejectEnded`. */
export async function closePanel(core: Core, sessionId: string) {
  if (!(await sessionStoreOf(core).closePanel(sessionId, new Date(core.now()))))
    await visitorAccessOf(core).rejectEnded(sessionId)
  await wakeupsOf(core).hint(sessionId)
}

/**
 * Stores in the background that the panel is open, because the visitor sent a message, typed or
 * sees the chat. The next report repeats a failed write.
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
