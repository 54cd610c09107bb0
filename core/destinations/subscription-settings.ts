import { parseDestinationUrl } from '../../contract/destination-url.ts'
import type { FieldIssue } from '../../contract/errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { field, integer, line, oneOf } from '../rules.ts'
import { type GivenHeader, headerIssues, sealedHeaders } from './custom-headers.ts'
import { handoffWhens, type Workflow } from './handoff-model.ts'
import type { LeadSubscription, SubscriptionChanges, SubscriptionStatus } from './model.ts'
import { type EventPolicy, isHook } from './policy-model.ts'
import { mappingIssues, policyIssues } from './policy-settings.ts'
import { isMasked, originOf, sealedDestination } from './sealed-destination.ts'

export interface SubscriptionSettings {
  destinationUrl?: string
  mappedFields?: string[]
  /** Names under which mapped fields are sent. Replaces all present ones. */
  sentNames?: Record<string, string>
  automatic?: boolean
  policy?: EventPolicy
  status?: SubscriptionStatus
  /** New list of custom headers. */
  headers?: GivenHeader[]
  /** Maximum number of requests per second; 0 for no limit. */
  maxPerSecond?: number
  /** Number of consecutive 404 answers that disable the subscription; 0 for never. */
  disableAfterNotFound?: number
  /** With an empty id, there is no workflow. */
  workflow?: Workflow
}

const maxRate = 1000
const maxNotFound = 100

type Stored = Pick<LeadSubscription, 'resource'> &
  Partial<Pick<LeadSubscription, 'destination' | 'headers' | 'mappedFields' | 'sentNames'>>

/** Returns the violated rules of settings. `stored` is the subscription before the change. */
export const settingIssues = (settings: SubscriptionSettings, stored: Stored): (FieldIssue | undefined)[] => {
  const { destinationUrl, headers = [] } = settings
  const { maxPerSecond = 0, disableAfterNotFound = 0 } = settings
  const kept = isNewOrigin(destinationUrl, stored) ? [] : (stored.headers ?? [])
  return [
    field('/destinationUrl', destinationUrl, destinationShape),
    ...leadIssues(settings, stored),
    ...policyIssues(settings.policy, stored),
    ...headerIssues(headers, kept),
    field('/maxPerSecond', maxPerSecond, integer(0, maxRate)),
    field('/disableAfterNotFound', disableAfterNotFound, integer(0, maxNotFound)),
  ]
}

/** Returns the violated rules of what only a lead subscription has. */
function leadIssues(settings: SubscriptionSettings, stored: Stored): (FieldIssue | undefined)[] {
  const { mappedFields = stored.mappedFields ?? [], automatic = false, workflow } = settings
  const hasWorkflow = workflow !== undefined && workflow.workflowId !== ''
  if (isHook(stored))
    return [
      mappedFields.length > 0 ? { path: '/mappedFields', rule: 'maxItems' } : undefined,
      automatic ? { path: '/automatic', rule: 'const' } : undefined,
      hasWorkflow ? { path: '/workflow', rule: 'const' } : undefined,
    ]
  const { sentNames = sentNamesOf(stored.sentNames, mappedFields) } = settings
  return [
    ...mappingIssues({ mappedFields, sentNames }),
    hasWorkflow ? field('/workflow/workflowId', workflow.workflowId, line(1, 128)) : undefined,
    hasWorkflow ? field('/workflow/when', workflow.when, oneOf(...handoffWhens)) : undefined,
  ]
}

/** Returns the sent names without those of fields that are no longer mapped. */
export function sentNamesOf(sentNames: LeadSubscription['sentNames'], mappedFields: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(sentNames ?? {}).filter(([name]) => mappedFields.includes(name)))
}

/** Returns the fields to store. Headers of another origin are removed, and their names are kept. */
export function changesOf(
  secretBox: SecretBox,
  { destinationUrl, headers, ...rest }: Omit<SubscriptionSettings, 'status'> & Pick<LeadSubscription, 'followedTo'>,
  read: LeadSubscription,
  at: Date,
): SubscriptionChanges {
  const isMoved = isNewOrigin(destinationUrl, read)
  const { headers: present = [], droppedHeaders = [] } = read
  return {
    ...rest,
    ...(rest.mappedFields && { sentNames: sentNamesOf(rest.sentNames ?? read.sentNames, rest.mappedFields) }),
    ...(destinationUrl !== undefined && {
      destination: sealedDestination(secretBox, destinationUrl),
      judgedSince: at,
    }),
    ...(isMoved && {
      headers: [],
      droppedHeaders: present.length > 0 ? present.map(({ name }) => name) : droppedHeaders,
    }),
    ...(headers && { headers: sealedHeaders(secretBox, headers, isMoved ? [] : present), droppedHeaders: [] }),
  }
}

/** Whether a new URL moves the destination to another scheme, host or port. */
const isNewOrigin = (destinationUrl: string | undefined, { destination }: Pick<Stored, 'destination'>): boolean =>
  destinationUrl !== undefined &&
  parseDestinationUrl(destinationUrl) !== undefined &&
  originOf(destinationUrl) !== destination?.origin

function destinationShape(value: string): string | undefined {
  if (value.length > 2048) return 'maxLength'
  if (isMasked(value)) return 'masked'
  return parseDestinationUrl(value) ? undefined : 'format'
}
