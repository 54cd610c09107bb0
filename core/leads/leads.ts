import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { FieldIssue } from '../../contract/errors.ts'
import type { findConversation } from '../conversations/conversation-access.ts'
import type { inboxOf } from '../conversations/inbox.ts'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { EventLog } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, isIdempotencyKey, text, validate } from '../rules.ts'
import type { searchIndexOf } from '../search/search-index.ts'
import { operationSessionOf, type VisitorCredentials } from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Consents } from '../visitors/service.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import { formIssues, formKinds, storedFields } from '../workspaces/forms.ts'
import type { FormKind } from '../workspaces/model.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { LeadStore } from './lead-store.ts'
import { type Lead, type LeadFanOut, leadFieldName } from './model.ts'
import type { Suppressions } from './suppressions.ts'

interface FormSubmission {
  credentials: VisitorCredentials
  form: FormKind
  fields: Record<string, string>
  idempotencyKey: string
}

export interface Leads {
  /**
   * Stores a lead, once per operation, and returns its id. Errors: NotFound if the workspace or the
   * conversation does not exist, ValidationFailed.
   */
  capture(
    lead: { workspaceId: string; source: string; fields: Record<string, string>; conversationId?: string },
    scope: string | undefined,
    operation?: string,
  ): Promise<string>
  /**
   * Creates a lead from a form that a visitor submitted. A repeat with the same idempotency key
   * returns the first result. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * ValidationFailed, ConsentRequired, VisitorSuppressed, IdempotencyKeyInvalid, IdempotencyConflict.
   */
  submitForm(submission: FormSubmission): Promise<{ formSubmissionId: string; replayed: boolean }>
  /**
   * Adds a visitor's form to its conversation, once. The operators' list then shows the conversation
   * like after a message (contract, rule 31).
   */
  enterForm(lead: Pick<Lead, 'leadId' | 'conversationId' | 'formSubmissionId' | 'sessionId'>): Promise<void>
  /** Returns the fields of these leads, without those of removed leads. */
  fieldsOf(leadIds: string[]): Promise<Map<string, Lead['fields']>>
  /** Returns a lead. Errors: LeadNotFound, also for a lead of another workspace. */
  find(leadId: string, scope: string | undefined): Promise<Lead>
  /**
   * Returns a page of leads, newest first, or the leads with these ids. Errors: ValidationFailed.
   */
  list(query: {
    workspaceId: string
    leadIds?: string[]
    /** An e-mail address or telephone number of the leads. */
    contact?: string
    limit?: number
    pageToken?: string
  }): Promise<{ leads: Lead[]; nextPageToken?: string }>
}

const maxFields = 50
const maxValue = 4000
const maxPage = 100
const defaultPage = 50
export function createLeads(dependencies: {
  store: LeadStore
  fanOut: Pick<LeadFanOut, 'plan' | 'send'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace'>
  access: VisitorAccess
  consents: Pick<Consents, 'require'>
  suppressions: Pick<Suppressions, 'isSuppressed' | 'contactIds'>
  sessions: Pick<SessionStore, 'subjectsIn'>
  searchIndex: Pick<ReturnType<typeof searchIndexOf>, 'add'>
  conversationAccess: { find(id: string, scope: string | undefined): ReturnType<typeof findConversation> }
  log: Pick<EventLog, 'append'>
  inbox: Pick<ReturnType<typeof inboxOf>, 'record'>
  plannedIds: PlannedIds
  now: () => number
}): Leads {
  const { store, fanOut, workspaceStore, access, consents, suppressions, sessions } = dependencies
  const { searchIndex, conversationAccess, log, inbox, plannedIds, now } = dependencies

  async function subjectsOf(conversationId: string | undefined): Promise<string[]> {
    if (conversationId === undefined) return []
    return (await sessions.subjectsIn([conversationId])).get(conversationId) ?? []
  }

  async function enterForm({ leadId, conversationId, formSubmissionId, sessionId }: Parameters<Leads['enterForm']>[0]) {
    if (conversationId === undefined || formSubmissionId === undefined) return
    const { event } = await log.append({
      conversationId,
      sessionId,
      type: 'form.submitted',
      operationKey: operationKeys.form(formSubmissionId),
      inputHash: 'form',
      data: { leadId },
    })
    inbox.record(event)
  }

  async function finish(lead: Lead) {
    const { leadId, conversationId, workspaceId, createdAt: at, fields } = lead
    await fanOut.send(lead)
    if (conversationId === undefined) return
    const source = { kind: 'lead' as const, conversationId, leadId }
    await searchIndex.add({ source, workspaceId, at, texts: Object.values(fields) })
  }

  return {
    enterForm,

    async capture({ workspaceId, source, fields, conversationId }, scope, operation = randomUUID()) {
      if (scope !== undefined && scope !== workspaceId) throw new ServiceError(ErrorCode.NOT_FOUND)
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      validate(field('/source', source, text(1, 64)), ...leadFieldIssues(fields))
      if (conversationId !== undefined) await conversationAccess.find(conversationId, workspaceId)
      const person = { fields, subjects: await subjectsOf(conversationId) }
      if (await suppressions.isSuppressed(workspaceId, person)) throw new ServiceError(ErrorCode.VISITOR_SUPPRESSED)
      const lead: Lead = {
        contacts: await suppressions.contactIds(workspaceId, person),
        leadId: plannedIds('lead', operation),
        workspaceId,
        source,
        fields,
        conversationId,
        createdAt: new Date(now()),
      }
      Object.assign(lead, await fanOut.plan(lead))
      // If an earlier run of the operation stored the lead, that run or the fan-out job creates the
      // deliveries.
      if (!(await store.insert(lead))) await finish(lead)
      return lead.leadId
    },

    async submitForm({ credentials, form, fields: given, idempotencyKey }) {
      const visitor = await access.authorize(credentials)
      const { session, installation } = visitor
      const { capability, source } = formKinds[form]
      requireCapability(installation, capability)
      if (!isIdempotencyKey(idempotencyKey)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      const operationKey = `${operationSessionOf(session)} ${form} ${idempotencyKey}`
      const isRepeated = async () => (await store.findByOperation(operationKey)) !== undefined
      // The form may have changed since the first submission with this key.
      const definition = installation.forms?.[form] ?? []
      const issues = formIssues(definition, given)
      if (issues.some(Boolean) && !(await isRepeated())) validate(...issues)
      await consents.require(visitor, isRepeated)
      const { workspaceId, conversationId, identity } = session
      const formSubmissionId = newId('frm')
      const inputHash = hashInput({ form, fields: given })
      const fields = storedFields(definition, given)
      const person = { fields, subjects: identity ? [identity.externalSubject] : [] }
      if ((await suppressions.isSuppressed(workspaceId, person)) && !(await isRepeated()))
        throw new ServiceError(ErrorCode.VISITOR_SUPPRESSED)
      const lead: Lead = {
        contacts: await suppressions.contactIds(workspaceId, person),
        leadId: newId('lead'),
        workspaceId,
        source,
        fields,
        conversationId,
        formSubmissionId,
        sessionId: session.sessionId,
        publicSiteKey: session.publicSiteKey,
        createdAt: new Date(now()),
        operationKey,
        inputHash,
      }
      Object.assign(lead, await fanOut.plan(lead))
      const earlier = await store.insert(lead)
      if (!earlier) {
        await Promise.all([enterForm(lead), finish(lead)])
        return { formSubmissionId, replayed: false }
      }
      if (earlier.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      return { formSubmissionId: earlier.formSubmissionId ?? '', replayed: true }
    },

    async fieldsOf(leadIds) {
      const found = leadIds.length === 0 ? [] : await store.findMany(leadIds)
      return new Map(found.map(({ leadId, fields }) => [leadId, fields]))
    },

    async find(leadId, scope) {
      return inWorkspace(await store.find(leadId), scope, ErrorCode.LEAD_NOT_FOUND)
    },

    async list({ workspaceId, leadIds = [], contact, limit = defaultPage, pageToken }) {
      validate(field('/limit', limit, integer(1, maxPage)), field('/leadIds', leadIds.length, integer(0, maxPage)))
      if (leadIds.length > 0)
        return { leads: (await store.findMany(leadIds)).filter((lead) => lead.workspaceId === workspaceId) }
      const contacts =
        contact === undefined ? undefined : await suppressions.contactIds(workspaceId, { fields: { contact } })
      if (contacts?.length === 0) throw invalid('/contact', 'format')
      const place = `leads ${workspaceId} ${contacts ?? ''}`
      const end = readPageToken(place, pageToken)
      const found = await store.list(
        { workspaceId, contacts, limit: limit + 1 },
        end && { createdAt: end.at, id: end.id },
      )
      const { page, nextPageToken } = cutPage(found, limit, place, ({ createdAt, leadId }) => ({
        at: createdAt,
        id: leadId,
      }))
      return { leads: page, nextPageToken }
    },
  }
}

function leadFieldIssues(fields: Record<string, string>): (FieldIssue | undefined)[] {
  const entries = Object.entries(fields)
  if (entries.length > maxFields) return [{ path: '/fields', rule: 'maxProperties' }]
  return entries.map(([name, value]) =>
    leadFieldName.test(name)
      ? field(`/fields/${name}`, value, text(0, maxValue))
      : { path: '/fields', rule: 'propertyNames' },
  )
}
