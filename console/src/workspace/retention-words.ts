import type { Retention, RetentionPeriod } from '#proto/workspace/v1/workspace_pb.js'

export type RetentionKind = Exclude<keyof Retention, '$typeName' | '$unknown'>

/** The periods of a workspace in the order of the form. */
export const retentionKinds: { kind: RetentionKind; label: string; hint: string }[] = [
  {
    kind: 'conversations',
    label: 'Conversations',
    hint: 'After the last message. Messages, sessions and screenshots are removed. Leads stay.',
  },
  { kind: 'leads', label: 'Leads', hint: 'After they were captured. Their deliveries are removed too.' },
  { kind: 'emptySessions', label: 'Sessions without a message', hint: 'After they ended.' },
  { kind: 'audit', label: 'Audit', hint: 'The history of destinations and records of erasures.' },
  { kind: 'heldDeliveries', label: 'Waiting deliveries', hint: 'Deliveries that wait for a destination that is off.' },
]

/** Longest period that can be set, in days. */
export const maxDays = 3_650

/** A period as the form shows it. */
export interface PeriodInput {
  choice: 'default' | 'forever' | 'days'
  days: string
}

export function inputOf(period: RetentionPeriod | undefined): PeriodInput {
  const days = period?.period.case === 'days' ? String(period.period.value) : '30'
  if (!period || period.isDefault) return { choice: 'default', days }
  return { choice: period.period.case === 'days' ? 'days' : 'forever', days }
}

export function defaultText(period: RetentionPeriod | undefined): string {
  if (!period?.isDefault) return 'Default of the service'
  return `Default (${period.period.case === 'days' ? daysText(period.period.value) : 'no limit'})`
}

const daysText = (days: number) => (days === 1 ? '1 day' : `${days} days`)

/** Returns the error of a number of days, if there is one. */
export function daysProblem({ choice, days }: PeriodInput): string | undefined {
  if (choice !== 'days') return undefined
  const isValid = /^\d{1,4}$/.test(days.trim()) && Number(days) >= 1 && Number(days) <= maxDays
  return isValid ? undefined : `Enter 1 to ${maxDays.toLocaleString('en')} days.`
}
