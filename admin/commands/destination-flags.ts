import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'

// Flags of everything that sends to a destination: subscriptions and hooks.

export const header = {
  type: 'string',
  multiple: true,
  description: 'a header of each request, `name: value`; repeatable',
} as const
export const statuses = { enabled: SubscriptionStatus.ENABLED, disabled: SubscriptionStatus.DISABLED }

export const notFound = {
  type: 'string',
  description: '404 answers in a row that disable the subscription: 1 to 100, default 5; 0 for never',
} as const
export const rate = { type: 'string', description: 'requests per second, at most' } as const

/** Returns the limits that the flags `rate` and `not-found` set. */
export const limitsOf = (rate: string | undefined, notFound: string | undefined) => ({
  maxPerSecond: rate === undefined ? undefined : Number(rate),
  disableAfterNotFound: notFound === undefined ? undefined : Number(notFound),
})

export function toHeader(text: string) {
  const [name = '', ...rest] = text.split(':')
  return { name: name.trim(), ...(rest.length > 0 && { value: rest.join(':').trim() }) }
}
