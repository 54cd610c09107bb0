import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ConversationAccess } from '../conversations/conversation-access.ts'
import { pageTokenAfter, readPageToken } from '../conversations/page-token.ts'
import { type FieldIssue, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { PlannedIds } from '../keys/planned-ids.ts'
import { field, integer, isIdempotencyKey, text, validate } from '../rules.ts'
import { operationSessionOf } from '../visitors/session-store.ts'
import type { VisitorAccess, VisitorCredentials } from '../visitors/visitor-access.ts'
import type { FormKind, WorkspaceStore } from '../workspaces/workspace-store.ts'
import { formIssues, formKinds } from './forms.ts'
import type { LeadFanOut } from './lead-fan-out.ts'
import type { Lead, LeadStore } from './lead-store.ts'

export interface FormSubmission {
  credentials: VisitorCredentials
  form: FormKind
  fields: Record<string, string>
  idempotencyKey: string
}

export interface Leads {
  /** Stores a lead, once per operation, and returns its id. Errors: NotFound, ValidationFailed. */
  capture(
    lead: { workspaceId: string; source: string; fields: Record<string, string>; conversationId?: string },
    scope: string | undefined,
    operation?: string,
  ): Promise<string>
  /**
   * Creates a lead from a form that a visitor submitted, as one logical operation. Errors: those of
   * VisitorAccess.authorize, RouteNotAdvertised, ValidationFailed, IdempotencyKeyInvalid,
   * IdempotencyConflict.
   */
  submitForm(submission: FormSubmission): Promise<{ formSubmissionId: string; replayed: boolean }>
  /** Errors: LeadNotFound, also for a lead of another workspace. */
  find(leadId: string, scope: string | undefined): Promise<Lead>
  /** Newest first. Errors: ValidationFailed. */
  list(query: {
    workspaceId: string
    limit?: number
    pageToken?: string
  }): Promise<{ leads: Lead[]; nextPageToken?: string }>
}

const maxFields = 50
const maxValue = 4000
const maxPage = 100
const defaultPage = 50
/** Allowed names of lead fields. */
export const leadFieldName = /^[A-Za-z0-9_-]{1,64}$/

export function createLeads(dependencies: {
  store: LeadStore
  fanOut: Pick<LeadFanOut, 'plan' | 'send'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace'>
  access: VisitorAccess
  conversationAccess: ConversationAccess
  plannedIds: PlannedIds
  now: () => number
}): Leads {
  const { store, fanOut, workspaceStore, access, conversationAccess, plannedIds, now } = dependencies

  return {
    async capture({ workspaceId, source, fields, conversationId }, scope, operation = randomUUID()) {
      if (scope !== undefined && scope !== workspaceId) throw new ServiceError(ErrorCode.NOT_FOUND)
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      validate(field('/source', source, text(1, 64)), ...leadFieldIssues(fields))
      if (conversationId !== undefined) await conversationAccess.find(conversationId, workspaceId)
      const lead: Lead = {
        leadId: plannedIds('lead', operation),
        workspaceId,
        source,
        fields,
        conversationId,
        createdAt: new Date(now()),
        ...(await fanOut.plan(workspaceId)),
      }
      // If an earlier run of the operation stored it and died, the fan-out job sends it.
      if (!(await store.insert(lead))) await fanOut.send(lead)
      return lead.leadId
    },

    async submitForm({ credentials, form, fields, idempotencyKey }) {
      const { session, installation } = await access.authorize(credentials)
      const { capability, source } = formKinds[form]
      if (!installation.capabilities[capability]) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      if (!isIdempotencyKey(idempotencyKey)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      validate(...formIssues(installation.forms?.[form] ?? [], fields))
      const { workspaceId, conversationId } = session
      const formSubmissionId = newId('frm')
      const inputHash = hashInput({ form, fields })
      const lead: Lead = {
        leadId: newId('lead'),
        workspaceId,
        source,
        fields,
        conversationId,
        formSubmissionId,
        createdAt: new Date(now()),
        operationKey: `${operationSessionOf(session)} ${form} ${idempotencyKey}`,
        inputHash,
        ...(await fanOut.plan(workspaceId)),
      }
      const earlier = await store.insert(lead)
      if (!earlier) {
        await fanOut.send(lead)
        return { formSubmissionId, replayed: false }
      }
      if (earlier.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      return { formSubmissionId: earlier.formSubmissionId ?? '', replayed: true }
    },

    async find(leadId, scope) {
      const lead = await store.find(leadId)
      if (!lead || (scope !== undefined && scope !== lead.workspaceId)) throw new ServiceError(ErrorCode.LEAD_NOT_FOUND)
      return lead
    },

    async list({ workspaceId, limit = defaultPage, pageToken }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const end = pageToken === undefined ? undefined : readPageToken(pageToken)
      const found = await store.list(workspaceId, limit + 1, end && { createdAt: end.at, id: end.id })
      const leads = found.slice(0, limit)
      const last = leads.at(-1)
      if (found.length <= limit || !last) return { leads }
      return { leads, nextPageToken: pageTokenAfter({ at: last.createdAt, id: last.leadId }) }
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
