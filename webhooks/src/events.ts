import { type EventData, knownVersions } from './event-kinds.ts'
import { WebhookError } from './webhook-error.ts'

export type EventType = keyof EventData

interface Envelope {
  /** Id of the event, the same on every repeat. Keep accepted ids for at least two days. */
  id: string
  /** Version of the data of this kind. */
  contractVersion: string
  /** ISO time. Events may arrive in another order. */
  occurredAt: string
  /** Set if an operator tests the destination. The data is a sample: do not store it. */
  test?: true
}

/** An event of a kind or version that this version of the package does not know. Accept and ignore it. */
export interface UnknownEvent extends Envelope {
  eventType: 'unknown'
  /** Type as it was sent. */
  receivedType: string
  data: Record<string, unknown>
}

/** An event of any kind. `eventType` tells which data it has. */
export type WebhookEvent =
  | { [Type in EventType]: Envelope & { eventType: Type; data: EventData[Type] } }[EventType]
  | UnknownEvent

const majorOf = (version: string) => version.split('.', 1)[0]

/** Returns the event of a verified body. Errors: `WebhookError` with `invalid_body`. */
export function eventOf(text: string): WebhookEvent {
  const { eventType, ...rest } = parsed(text)
  const { id, contractVersion, occurredAt, data } = rest
  const texts = [eventType, id, contractVersion, occurredAt]
  if (!texts.every((each) => typeof each === 'string') || !isObject(data)) throw new WebhookError('invalid_body')
  const version = Object.hasOwn(knownVersions, eventType as string) && knownVersions[eventType as EventType]
  const isKnown = version !== false && majorOf(version) === majorOf(contractVersion as string)
  const event = isKnown ? { ...rest, eventType } : { ...rest, eventType: 'unknown', receivedType: eventType }
  return event as WebhookEvent
}

function parsed(text: string): Record<string, unknown> {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    throw new WebhookError('invalid_body', { cause: error })
  }
  if (!isObject(body)) throw new WebhookError('invalid_body')
  return body
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
