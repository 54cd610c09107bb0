import type { FieldIssue } from '../../contract/errors.ts'
import { parseDestinationUrl } from '../../platform/addresses/destination-url.ts'
import { leadFieldName } from '../leads/model.ts'
import { field, integer, line, oneOf } from '../rules.ts'
import { type GivenHeader, headerIssues } from './custom-headers.ts'
import { handoffWhens, type Workflow } from './handoff-model.ts'
import type { LeadSubscription, SubscriptionStatus } from './model.ts'
import { isMasked, originOf, storedOrigin } from './sealed-destination.ts'

export interface SubscriptionSettings {
  destinationUrl?: string
  mappedFields?: string[]
  automatic?: boolean
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

const maxMapped = 50
const maxRate = 1000
const maxNotFound = 100

/** Returns the violated rules of settings. `stored` is the subscription before the change. */
export const settingIssues = (
  settings: SubscriptionSettings,
  stored: Pick<LeadSubscription, 'destination' | 'destinationUrl' | 'headers' | 'isOperational'>,
): (FieldIssue | undefined)[] => {
  const { destinationUrl, mappedFields = [], headers = [], automatic = false } = settings
  const { maxPerSecond = 0, disableAfterNotFound = 0 } = settings
  const kept = isNewOrigin(destinationUrl, stored) ? [] : (stored.headers ?? [])
  return [
    field('/destinationUrl', destinationUrl, destinationShape),
    ...mappingIssues(mappedFields),
    ...headerIssues(headers, kept),
    field('/maxPerSecond', maxPerSecond, integer(0, maxRate)),
    ...workflowIssues(settings.workflow, stored),
    field('/disableAfterNotFound', disableAfterNotFound, integer(0, maxNotFound)),
    // An operational endpoint receives events about deliveries, not leads, so it maps no fields.
    stored.isOperational && mappedFields.length > 0 ? { path: '/mappedFields', rule: 'maxItems' } : undefined,
    stored.isOperational && automatic ? { path: '/automatic', rule: 'const' } : undefined,
  ]
}

function workflowIssues(
  workflow: Workflow | undefined,
  { isOperational }: Pick<LeadSubscription, 'isOperational'>,
): (FieldIssue | undefined)[] {
  if (!workflow || workflow.workflowId === '') return []
  // An operational endpoint receives no leads, so it hands nothing off.
  if (isOperational) return [{ path: '/workflow', rule: 'const' }]
  return [
    field('/workflow/workflowId', workflow.workflowId, line(1, 128)),
    field('/workflow/when', workflow.when, oneOf(...handoffWhens)),
  ]
}

/** Whether a new URL moves the destination to another scheme, host or port. */
export const isNewOrigin = (
  destinationUrl: string | undefined,
  stored: Pick<LeadSubscription, 'destination' | 'destinationUrl'>,
): boolean =>
  destinationUrl !== undefined &&
  parseDestinationUrl(destinationUrl) !== undefined &&
  originOf(destinationUrl) !== storedOrigin(stored)

function destinationShape(value: string): string | undefined {
  if (value.length > 2048) return 'maxLength'
  if (isMasked(value)) return 'masked'
  return parseDestinationUrl(value) ? undefined : 'format'
}

function mappingIssues(names: string[]): (FieldIssue | undefined)[] {
  if (names.length > maxMapped) return [{ path: '/mappedFields', rule: 'maxItems' }]
  return names.map((name, index) =>
    field(`/mappedFields/${index}`, name, () => {
      // The field `reference` of a webhook is reserved for the lead's id.
      if (!leadFieldName.test(name) || name === 'reference') return 'pattern'
      return names.indexOf(name) === index ? undefined : 'uniqueItems'
    }),
  )
}
