import { DisabledReason } from '#proto/lead/v1/subscription_pb.js'
import { leadFieldName } from '../../../contract/lead-fields.ts'
import { translate } from '../language.ts'
import eventNames from '../languages/event-names.json' with { type: 'json' }
import { countOf, formatNumber } from '../time.ts'

const reasons: Partial<Record<DisabledReason, string>> = {
  [DisabledReason.OPERATOR]: 'An operator disabled it.',
  [DisabledReason.REJECTED_AUTH]:
    'The destination rejected the signature or the credentials (401 or 403). Check its secret, then enable it again.',
  [DisabledReason.FAILING]: 'Every attempt failed for five days. Check the destination, then enable it again.',
  [DisabledReason.GONE]: 'The destination is gone (410, or repeated 404). Check its URL, then enable it again.',
}

const names: Record<string, string> = eventNames

/** Returns the words for a type of events. A delivery without one is a test. */
export const eventText = (type = 'test') => translate(names[type] ?? type)

const countedMax = 10_000

/** Does what `countOf` does for deliveries, which the service counts up to `countedMax`. */
export const countOfDeliveries = (count: number, one: string, many = one) =>
  count < countedMax ? countOf(count, one, many) : many.replace('#', `${formatNumber(countedMax)} or more`)

export const disabledText = (reason: DisabledReason) => reasons[reason] ?? 'The reason is unknown.'

const actions: Record<string, string> = {
  created: 'Created',
  updated: 'Changed',
  enabled: 'Enabled',
  disabled: 'Disabled',
  secret_rotated: 'Secret rotated',
  secret_activated: 'New secret activated',
  recovery_started: 'Failed deliveries sent again',
  attempt_created: 'Delivery requested',
  attempt_retried: 'Retry requested',
}

export const actionText = (action: string) => actions[action] ?? action

/** Returns the problem with a destination URL. The service also checks the addresses of its host. */
export function destinationProblem(text: string) {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'Enter a full URL that starts with https:// or http://.'
  if (url.username !== '' || url.password !== '') return 'Remove the user name and password from the URL.'
  return url.hash === '' ? undefined : 'Remove the # and everything after it from the URL.'
}

export const fieldProblem = (name: string) =>
  name === 'reference'
    ? '“reference” is always sent. It is the lead’s ID.'
    : leadFieldName.test(name)
      ? undefined
      : 'Up to 64 letters, digits, _ and -.'

export const commonFields = ['name', 'email', 'phone', 'company', 'message']
