import { randomUUID } from 'node:crypto'
import { leadFieldName } from '../../contract/lead-fields.ts'
import { createFollower, handleEach } from '../concurrency/follower.ts'
import { requireConsent } from '../consents/consents.ts'
import { findConversation } from '../conversations/conversation-access.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure, type Scope, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { insertLead } from '../leads/leads.ts'
import { type Lead, toLead } from '../leads/model.ts'
import { contactIdsOf, findSuppressedLeads, isSuppressed, type Person } from '../leads/suppressions.ts'
import { logOf } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { committed } from '../mongodb/committed.ts'
import { notDeleted, notErasing } from '../mongodb/not-erasing.ts'
import { field, isIdempotencyKey, text, validate } from '../rules.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { operationSessionOf, type VisitorOperation } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { formIssues, formKinds, storedFields } from '../workspaces/forms.ts'
import { type FormKind, requireCapability } from '../workspaces/model.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { addAutomaticDelivery, leadContent } from './intake.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import { coversLead, defaultPolicy } from './subscription-model.ts'

const maxFields = 50
const maxValue = 4000
/** After this time, the process that captured a lead counts as dead, and another completes its fan-out. */
const deadAfterMs = 5000

/**
 * Stores a lead, once per operation, and returns its id. Errors: `NotFound` for the workspace or
 * conversation, `ValidationFailed`, `VisitorSuppressed`.
 */
export async function captureLead(
  core: Core,
  given: Pick<Lead, 'workspaceId' | 'source' | 'fields' | 'conversationId'>,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<string> {
  const { workspaceId, source, fields, conversationId } = given
  if (scope !== undefined && scope !== workspaceId) throw new ServiceError('NotFound')
  await findWorkspace(core, workspaceId)
  validate(field('/source', source, text(1, 64)), ...leadFieldIssues(fields))
  if (conversationId !== undefined) await findConversation(core, conversationId, workspaceId)
  const found = await sessionStoreOf(core).subjectsIn(conversationId === undefined ? [] : [conversationId])
  const person = { fields, subjects: [...found.values()].flat() }
  if (await isSuppressed(core, workspaceId, person)) throw new ServiceError('VisitorSuppressed')
  const leadId = core.plannedIds('lead', operation)
  await storeLead(core, { ...given, leadId }, person)
  return leadId
}

/**
 * Stores a new lead, and creates what follows from it. Returns the lead that an earlier run of the
 * operation stored; that run, or the job, creates its deliveries.
 */
async function storeLead(core: Core, given: Omit<Lead, 'contacts' | 'createdAt'>, person: Person) {
  const contacts = await contactIdsOf(core, given.workspaceId, person)
  const lead: Lead = { ...given, contacts, createdAt: dateOf(core) }
  Object.assign(lead, await planFanOut(core, lead))
  const earlier = await insertLead(core, lead)
  if (!earlier) await Promise.all([enterForm(core, lead), finish(core, lead)])
  return earlier
}

/**
 * Creates a lead from a visitor's form. A repeat with the same key returns the first result. Errors: those
 * of `authorize`, `RouteNotAdvertised`, `ValidationFailed`, `ConsentRequired`, `VisitorSuppressed`,
 * `IdempotencyKeyInvalid`, `IdempotencyConflict`.
 */
export async function submitForm(
  core: Core,
  submission: VisitorOperation & { form: FormKind; fields: Record<string, string> },
) {
  const { credentials, form, fields: given, idempotencyKey } = submission
  const visitor = await visitorAccessOf(core).authorize(credentials)
  const { session, installation } = visitor
  const { capability, source } = formKinds[form]
  requireCapability(installation, capability)
  if (!isIdempotencyKey(idempotencyKey)) throw new ServiceError('IdempotencyKeyInvalid')
  const operationKey = `${operationSessionOf(session)} ${form} ${idempotencyKey}`
  const isRepeated = async () => (await core.db.leads.findOne({ operationKey })) !== null
  // The form may have changed since the first submission with this key.
  const definition = installation.forms?.[form] ?? []
  const issues = formIssues(definition, given)
  if (issues.some(Boolean) && !(await isRepeated())) validate(...issues)
  await requireConsent(core, visitor, isRepeated)
  const { workspaceId, conversationId, identity } = session
  const formSubmissionId = newId('frm')
  const inputHash = hashInput({ form, fields: given })
  const fields = storedFields(definition, given)
  const person = { fields, subjects: identity ? [identity.externalSubject] : [] }
  if ((await isSuppressed(core, workspaceId, person)) && !(await isRepeated()))
    throw new ServiceError('VisitorSuppressed')
  const { sessionId, publicSiteKey } = session
  const lead = { leadId: newId('lead'), workspaceId, source, fields, conversationId, formSubmissionId }
  const earlier = await storeLead(core, { ...lead, sessionId, publicSiteKey, operationKey, inputHash }, person)
  if (!earlier) return { formSubmissionId, replayed: false }
  if (earlier.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
  return { formSubmissionId: earlier.formSubmissionId ?? '', replayed: true }
}

function leadFieldIssues(fields: Record<string, string>) {
  const entries = Object.entries(fields)
  if (entries.length > maxFields) return [{ path: '/fields', rule: 'maxProperties' }]
  return entries.map(([name, value]) =>
    leadFieldName.test(name)
      ? field(`/fields/${name}`, value, text(0, maxValue))
      : { path: '/fields', rule: 'propertyNames' },
  )
}

/**
 * Adds a form to its conversation, once. This lists the conversation like a message (contract, rule 31).
 */
export async function enterForm(
  core: Core,
  lead: Pick<Lead, 'leadId' | 'conversationId' | 'formSubmissionId' | 'sessionId'>,
) {
  const { leadId, conversationId, formSubmissionId, sessionId } = lead
  if (conversationId === undefined || formSubmissionId === undefined) return
  const { event } = await logOf(core).append({
    conversationId,
    sessionId,
    type: 'form.submitted',
    operationKey: operationKeys.form(formSubmissionId),
    inputHash: 'form',
    data: { leadId },
  })
  inboxOf(core).record(event)
}

async function finish(core: Core, lead: Lead) {
  const { leadId, conversationId, workspaceId, createdAt: at, fields } = lead
  await fanOutLead(core, lead).catch((error) => {
    logFailure(core.logger, 'lead fan-out failed; will retry')(error)
    core.bus.emit('due', 'finish lead fan-out', deadAfterMs)
  })
  if (conversationId === undefined) return
  const source = { kind: 'lead' as const, conversationId, leadId }
  await searchIndexOf(core).add({ source, workspaceId, at, texts: Object.values(fields) })
}

/**
 * Returns the subscriptions that cover a new lead, to be stored with it, so that a crash loses no delivery.
 */
export async function planFanOut({ db, now }: Core, lead: Lead) {
  const { workspaceId } = lead
  const automatic = await db.leadSubscriptions.find({ workspaceId, automatic: true, ...notDeleted }).toArray()
  const covering = automatic.filter(
    ({ policy = defaultPolicy }) => policy.types.includes('lead.ready-for-delivery') && coversLead(policy, lead),
  )
  if (covering.length === 0) return {}
  return { fanOut: { subscriptionIds: covering.map(({ _id }) => _id), since: new Date(now()) } }
}

/** Creates the automatic deliveries of a lead, one per stored subscription. Can be repeated. */
export async function fanOutLead(core: Core, lead: Lead) {
  if (!lead.fanOut) return
  const { workspaceId, leadId, conversationId } = lead
  const found = await Promise.all(lead.fanOut.subscriptionIds.map((id) => liveSubscriptionsOf(core).find(id)))
  const suppressed = await findSuppressedLeads(core, [lead])
  await Promise.all(
    found.map((known) => {
      if (!known) return undefined
      const key = `${workspaceId} automatic ${leadId} ${known.subscription.subscriptionId}`
      const content = leadContent(lead, known.subscription)
      return addAutomaticDelivery(core, key, content, known, { isSuppressed: suppressed.has(leadId), conversationId })
    }),
  )
  await core.db.leads.updateOne({ _id: leadId }, { $unset: { fanOut: '' } })
}

export const leadFanOutOf = perCore((core) =>
  createFollower({
    batch: 100,
    read: async (limit) => {
      const before = dateOf(core, -deadAfterMs)
      const due = { 'fanOut.since': { $lte: before }, ...notErasing }
      // A failover may roll back a lead that no majority has, but not its deliveries.
      return (await core.db.leads.find(due, { ...committed, limit }).toArray()).map(toLead)
    },
    // A lead that fails must not block the leads after it.
    handle: (leads) => handleEach(leads, (lead) => fanOutLead(core, lead)),
    since: ({ createdAt }) => createdAt,
    now: core.now,
  }),
)
