import { parseDestinationUrl } from '../../contract/destination-url.ts'
import type { FieldIssue } from '../../contract/errors.ts'
import { type DeliveryEventType, deliveryEvents, feedEventTypes, leadEventTypes } from '../../contract/event-kinds.ts'
import { type FieldMapping, leadFieldName, sentNameOf } from '../../contract/lead-fields.ts'
import { ServiceError } from '../errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { field, integer, issueIf, line, oneOf } from '../rules.ts'
import {
  type CustomHeader,
  defaultPolicy,
  type EventPolicy,
  followsFeed,
  handoffWhens,
  isHook,
  type LeadSubscription,
  leadSources,
  type Receives,
} from './subscription-model.ts'

/** New names of fields and headers replace all present ones. An empty workflow id means none. */
export type SubscriptionSettings = Partial<
  Pick<LeadSubscription, 'name' | 'mappedFields' | 'sentNames' | 'automatic' | 'policy' | 'status' | 'workflow'>
> &
  Pick<LeadSubscription, 'maxPerSecond' | 'disableAfterNotFound'> & { destinationUrl?: string; headers?: GivenHeader[] }

type Issues = (FieldIssue | undefined)[]

const maxRate = 1000
const maxNotFound = 100

type Stored = Pick<LeadSubscription, 'resource'> &
  Partial<Pick<LeadSubscription, 'destination' | 'headers' | 'mappedFields' | 'sentNames'>>

export const settingIssues = (settings: SubscriptionSettings, stored: Stored): Issues => {
  const { destinationUrl, name, headers = [], maxPerSecond, disableAfterNotFound } = settings
  const kept = isNewOrigin(destinationUrl, stored) ? [] : (stored.headers ?? [])
  return [
    field('/destinationUrl', destinationUrl, destinationShape),
    field('/name', name || undefined, line(1, 80)),
    ...leadIssues(settings, stored),
    ...policyIssues(settings.policy, stored),
    ...headerIssues(headers, kept),
    field('/maxPerSecond', maxPerSecond, integer(0, maxRate)),
    field('/disableAfterNotFound', disableAfterNotFound, integer(0, maxNotFound)),
  ]
}

function leadIssues(settings: SubscriptionSettings, stored: Stored): Issues {
  const { mappedFields = stored.mappedFields ?? [], automatic = false, workflow } = settings
  const hasWorkflow = workflow !== undefined && workflow.workflowId !== ''
  if (isHook(stored))
    return [
      issueIf(mappedFields.length > 0, '/mappedFields', 'maxItems'),
      issueIf(automatic, '/automatic', 'const'),
      issueIf(hasWorkflow, '/workflow', 'const'),
    ]
  const { sentNames = sentNamesOf(stored.sentNames, mappedFields) } = settings
  return [
    ...mappingIssues({ mappedFields, sentNames }),
    hasWorkflow ? field('/workflow/workflowId', workflow.workflowId, line(1, 128)) : undefined,
    hasWorkflow ? field('/workflow/when', workflow.when, oneOf(...handoffWhens)) : undefined,
  ]
}

/** Returns the sent names of fields that are still mapped. */
export function sentNamesOf(sentNames: LeadSubscription['sentNames'], mappedFields: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(sentNames ?? {}).filter(([name]) => mappedFields.includes(name)))
}

/** Returns the fields to store. Headers of another origin are removed, and their names are kept. */
export function changesOf(
  secretBox: SecretBox,
  { destinationUrl, headers, ...rest }: Omit<SubscriptionSettings, 'status'> & Pick<LeadSubscription, 'followedTo'>,
  read: LeadSubscription,
  at: Date,
): Partial<LeadSubscription> {
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

/** Whether the destination moves to another scheme, host or port. */
const isNewOrigin = (destinationUrl: string | undefined, { destination }: Pick<Stored, 'destination'>) =>
  destinationUrl !== undefined &&
  parseDestinationUrl(destinationUrl) !== undefined &&
  originOf(destinationUrl) !== destination?.origin

function destinationShape(value: string) {
  if (value.length > 2048) return 'maxLength'
  if (value.endsWith(mask)) return 'masked'
  return parseDestinationUrl(value) ? undefined : 'format'
}

const maxMapped = 50
const maxInstallations = 100

/** A hook sends events of the feed, a subscription those of leads. */
function policyIssues(policy: EventPolicy | undefined, stored: Pick<Receives, 'resource'>): Issues {
  if (!policy) return []
  const { types, sources, installations } = policy
  if (isHook(stored))
    return [
      issueIf(types.length === 0, '/eventTypes', 'minItems'),
      ...listIssues<DeliveryEventType>('/eventTypes', types, feedEventTypes),
      issueIf(sources.length + installations.length > 0, '/policy', 'const'),
    ]
  return [
    ...listIssues<DeliveryEventType>('/policy/types', types, leadEventTypes),
    ...listIssues('/policy/sources', sources, leadSources),
    issueIf(installations.length > maxInstallations, '/policy/installations', 'maxItems'),
  ]
}

const listIssues = <T>(path: string, values: T[], allowed: readonly T[]): Issues =>
  values.map((value, index) =>
    values.indexOf(value) === index
      ? field(`${path}/${index}`, value, oneOf(...allowed))
      : { path: `${path}/${index}`, rule: 'uniqueItems' },
  )

function mappingIssues({ mappedFields: names, sentNames = {} }: FieldMapping): Issues {
  if (names.length > maxMapped) return [{ path: '/mappedFields', rule: 'maxItems' }]
  const sent = names.map((name) => sentNameOf(name, { sentNames }))
  return [
    ...names.map((name, index) =>
      field(`/mappedFields/${index}`, name, () => {
        if (!leadFieldName.test(name)) return 'pattern'
        // The field `reference` of a webhook would replace the lead's id.
        if (sent[index] === 'reference' && !Object.hasOwn(sentNames, name)) return 'pattern'
        return names.indexOf(name) === index ? undefined : 'uniqueItems'
      }),
    ),
    ...Object.entries(sentNames).map(([name, sentName]): FieldIssue | undefined => {
      if (!leadFieldName.test(name) || !names.includes(name)) return { path: '/sentNames', rule: 'propertyNames' }
      const path = `/sentNames/${name}`
      if (!leadFieldName.test(sentName) || sentName === 'reference') return { path, rule: 'pattern' }
      return issueIf(sent.filter((each) => each === sentName).length !== 1, path, 'uniqueItems')
    }),
  ]
}

/** A header without a value keeps the stored value of its name. */
interface GivenHeader {
  name: string
  value?: string
}

const maxHeaders = 10
const nameMaxLength = 64
const valueMaxLength = 1024

/** Headers that the service or the HTTP connection sets. */
const reserved = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-correlation-id',
])
const reservedPrefixes = ['content-', 'proxy-', 'webhook-', 'x-service-']

/** A token (RFC 9110, section 5.6.2) that begins with a letter or digit. */
const token = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]*$/
/** Visible ASCII characters. Spaces and tabs are allowed between them. */
const fieldValue = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/

export function headerIssues(headers: GivenHeader[], stored: CustomHeader[]): Issues {
  if (headers.length > maxHeaders) return [{ path: '/headers', rule: 'maxItems' }]
  const names = headers.map(({ name }) => name.toLowerCase())
  return headers.flatMap(({ value }, index) => [
    field(`/headers/${index}/name`, names[index], (name) => nameRule(name, names.indexOf(name) === index)),
    value === undefined
      ? stored.some(({ name }) => name === names[index])
        ? undefined
        : { path: `/headers/${index}/value`, rule: 'required' }
      : field(`/headers/${index}/value`, value, valueRule),
  ])
}

function nameRule(name: string, isFirst: boolean) {
  if (name.length > nameMaxLength) return 'maxLength'
  if (!token.test(name)) return 'pattern'
  if (reserved.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix))) return 'reserved'
  return isFirst ? undefined : 'uniqueItems'
}

function valueRule(value: string) {
  if (value.length > valueMaxLength) return 'maxLength'
  return fieldValue.test(value) ? undefined : 'pattern'
}

/**
 * Returns the headers to store. Errors: `ValidationFailed` if another call removed a kept value meanwhile.
 */
export function sealedHeaders(secretBox: Pick<SecretBox, 'seal'>, headers: GivenHeader[], stored: CustomHeader[]) {
  return headers.map((given) => {
    const name = given.name.toLowerCase()
    if (given.value !== undefined) return { name, sealed: secretBox.seal(given.value) }
    const kept = stored.find((header) => header.name === name)
    if (!kept) throw new ServiceError('ValidationFailed')
    return kept
  })
}

const originOf = (url: string) => new URL(url).origin

export const sealedDestination = (secretBox: Pick<SecretBox, 'seal'>, url: string) => ({
  sealed: secretBox.seal(url),
  origin: originOf(url),
})

const mask = '/••••'

/** Shows the origin, with the rest masked. The result is not accepted as a URL. */
export const maskedDestination = ({ destination }: Pick<LeadSubscription, 'destination'>) => destination.origin + mask

/** Throws `PermissionDenied` if the caller may not read everything that the destination receives. */
export function requireReadable(
  { resource, policy = defaultPolicy, mappedFields, automatic }: Omit<Receives, 'sentNames'>,
  { scopes }: { scopes?: ReadonlySet<string> },
) {
  const sendsByItself = isHook({ resource }) || automatic || followsFeed(policy)
  const needed = sendsByItself ? policy.types.map((type) => deliveryEvents[type].scope) : []
  if (mappedFields.length > 0) needed.push('leads:read')
  if (scopes && needed.some((scope) => !scopes.has(scope))) throw new ServiceError('PermissionDenied')
}
