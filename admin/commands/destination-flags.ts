import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'

// Flags of everything that sends to a destination: subscriptions and hooks.

const subscription = {
  type: 'string',
  required: true,
  description: 'the id of the subscription or hook, or the host of the subscription’s destination',
} as const
/** Flags that select a subscription by its id, or by its workspace and destination. */
export const namedSubscription = {
  subscription,
  workspace: { type: 'string', description: 'the subscription’s workspace, if it is named by its destination' },
} as const

export const header = {
  type: 'string',
  multiple: true,
  description: 'a header of each request, `name: value`; repeatable',
} as const
export const statuses = { enabled: SubscriptionStatus.ENABLED, disabled: SubscriptionStatus.DISABLED }

/** The address of a destination. */
export const destinationUrl = {
  type: 'string',
  field: 'destinationUrl',
  description: 'the destination: https, at a public address or one in DELIVERY_ALLOWED_CIDRS of the cores',
} as const

export const notFound = {
  type: 'string',
  field: 'disableAfterNotFound',
  description: '404 answers in a row that disable the subscription: 1 to 100, default 5; 0 for never',
} as const
export const rate = {
  type: 'string',
  field: 'maxPerSecond',
  description: 'requests per second, at most',
} as const

/** Returns the limits that the flags `rate` and `not-found` set. */
export const limitsOf = (rate: string | undefined, notFound: string | undefined) => ({
  maxPerSecond: rate === undefined ? undefined : Number(rate),
  disableAfterNotFound: notFound === undefined ? undefined : Number(notFound),
})

export function toHeader(text: string) {
  const [name = '', ...rest] = text.split(':')
  return { name: name.trim(), ...(rest.length > 0 && { value: rest.join(':').trim() }) }
}

/** Flags of a list of destinations, and their fields in the request. */
export const pageFlags = {
  limit: { type: 'string', description: '1 to 100; default 100' },
  page: { type: 'string', field: 'pageToken', description: '`nextPageToken` of the previous page' },
} as const
