import { DisabledReason } from '#proto/lead/v1/subscription_pb.js'

const reasons: Partial<Record<DisabledReason, string>> = {
  [DisabledReason.OPERATOR]: 'An operator switched it off.',
  [DisabledReason.REJECTED_AUTH]:
    'The destination refused the signature or the access (401 or 403). Check its secret, then enable it again.',
  [DisabledReason.GONE]:
    'The destination says that it is gone (410, or 404 several times in a row). Check its address, then enable it again.',
}

export const disabledText = (reason: DisabledReason) => reasons[reason] ?? 'It is switched off.'

const actions: Record<string, string> = {
  created: 'Created',
  updated: 'Changed',
  enabled: 'Enabled',
  disabled: 'Disabled',
  secret_rotated: 'Secret rotated',
  attempt_created: 'Delivery asked for',
  attempt_retried: 'Retry asked for',
}

export const actionText = (action: string) => actions[action] ?? action

/** What is wrong with a destination as far as it can be seen from here; the service looks at where it leads. */
export function destinationProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'Write a whole address that begins with https:// or http://.'
  if (url.username !== '' || url.password !== '') return 'Leave user name and password out of the address.'
  return url.hash === '' ? undefined : 'Leave the part from # on out of the address.'
}

export function mappedFieldProblem(name: string): string | undefined {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) return 'Up to 64 letters, digits, _ and -.'
  return name === 'reference' ? '“reference” is always sent, as the lead’s id.' : undefined
}

export const commonFields = ['name', 'email', 'phone', 'company', 'message']
