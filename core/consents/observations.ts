import type { Filter } from 'mongodb'
import { type Core, dateOf } from '../core.ts'
import { repairLine } from '../repairs.ts'
import type { PageContext, Session, Visitor, VisitorCredentials } from '../sessions/model.ts'
import { type SessionDocument, sessionStoreOf } from '../sessions/session-store.ts'
import { changeLive, visitorAccessOf } from '../sessions/visitor-access.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type Installation, requireCapability } from '../workspaces/model.ts'
import { requireConsent } from './consents.ts'

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
  if (!page) return
  const update = { $set: { pageContext: page, pageContextAt: at } }
  if (policyVersion === undefined) await sessionStoreOf(core).update({ filter: { _id: sessionId }, update })
  else await core.db.sessions.updateOne({ _id: sessionId, ...hasGranted(policyVersion) }, update)
}

/** Matches sessions whose latest consent decision grants this version of the policy. */
function hasGranted(policyVersion: string): Filter<SessionDocument> {
  const granted = [{ $eq: ['$$last.decision', 'granted'] }, { $eq: ['$$last.policyVersion', policyVersion] }]
  return {
    $expr: { $let: { vars: { last: { $last: { $ifNull: ['$consents', []] } } }, in: { $and: granted } } },
  }
}

/** Stores that the panel was closed. Errors: those of `changeLive`. */
export async function closePanel(core: Core, sessionId: string) {
  await changeLive(core, sessionId, { $set: { panelClosedAt: dateOf(core) } })
  await wakeupsOf(core).hint(sessionId)
}

/**
 * Stores in the background that the panel is open, because the visitor sent a message, typed or
 * sees the chat. The next report repeats a failed write.
 */
export function notePanelUse(core: Core, { sessionId, panelClosedAt }: Session, by: 'message' | 'report') {
  const before = new Date(by === 'message' ? core.now() : core.now() - underWayMs)
  if (panelClosedAt === undefined || panelClosedAt > before) return
  const opening = core.db.sessions
    .updateOne({ _id: sessionId, panelClosedAt: { $lte: before } }, { $unset: { panelClosedAt: '' } })
    .then(() => wakeupsOf(core).hint(sessionId))
  opening.catch(() => {})
}

const validPage = (core: Core, { capabilities }: Installation, sent: PageContext) =>
  capabilities.pageContext ? repairPageContext(sent, core.config.PAGE_CONTEXT_MAX_BYTES) : undefined

const maxUrlLength = 2048
const maxTitleCodePoints = 256
const maxPixels = 100_000
/** Fields in the order in which they are dropped when a page context is too large. */
const droppedFirst = ['referrer', 'title', 'url'] as const

/**
 * Keeps the valid parts of a page context, with at most `maxBytes` of JSON. Removes query, fragment, user
 * info and the referrer's path. Never throws. Undefined if no part is valid.
 */
export function repairPageContext(sent: PageContext, maxBytes: number): PageContext | undefined {
  const url = pageUrl(sent.url)
  const title = repairLine(sent.title ?? '', maxTitleCodePoints)
  const referrer = webUrl(sent.referrer)?.origin
  const { viewport } = sent
  const kept: PageContext = {
    ...(url !== undefined && { url }),
    ...(title !== '' && { title }),
    ...(referrer !== undefined && referrer.length <= maxUrlLength && { referrer }),
    ...(viewport && isPixels(viewport.width) && isPixels(viewport.height) && { viewport }),
  }
  for (const name of droppedFirst) if (Buffer.byteLength(JSON.stringify(kept)) > maxBytes) delete kept[name]
  return Object.keys(kept).length > 0 ? kept : undefined
}

function pageUrl(sent: string | undefined) {
  const page = webUrl(sent)
  if (!page) return undefined
  page.username = ''
  page.password = ''
  page.search = ''
  page.hash = ''
  // URLs are not shortened within the host, because the result would be another host.
  return page.origin.length < maxUrlLength ? cutPath(page.href) : undefined
}

function webUrl(sent = '') {
  const url = URL.parse(repairLine(sent, sent.length))
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined
}

/** Shortens the path of a URL, but never within the percent-encoding of one character. */
function cutPath(href: string) {
  if (href.length <= maxUrlLength) return href
  let end = maxUrlLength
  const lastEscape = href.lastIndexOf('%', end - 1)
  if (lastEscape > end - 3) end = lastEscape
  while (/^%[89ab]/i.test(href.slice(end, end + 3)) && href[end - 3] === '%') end -= 3
  return href.slice(0, end)
}

function isPixels(value: number) {
  return Number.isInteger(value) && value >= 0 && value <= maxPixels
}
