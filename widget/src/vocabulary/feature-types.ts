import type {
  AcknowledgedScreenshot,
  ErrorEnvelope,
  NavigationAcknowledgement,
  ScreenshotAcknowledgement,
} from './gen/wire.ts'
import type { MessageAuthor, RatingState, WidgetErrorDetail } from './types.ts'

export type { UploadedScreenshot } from './gen/wire.ts'

/** A rejected field: the JSON pointer to the field and the rule that its value violates. */
export type FieldIssue = NonNullable<ErrorEnvelope['issues']>[number]

/** Maps the name of each rejected field to the rule that its value violates. */
export type FormIssues = Readonly<Record<string, string>>

export type ConsentDecision = 'granted' | 'denied'

/** State of the consent step. `status` is `asked` while the visitor has to decide. */
export interface ConsentState {
  status: 'asked' | ConsentDecision
  policyUrl?: string
  policyVersion: string
  isSending: boolean
  isHolding: boolean
  error?: WidgetErrorDetail
}

/**
 * State of a form's submission.
 *
 * - `open`: not submitted yet.
 * - `sending`: being submitted, with retries.
 * - `failed`: not accepted; the reason is in `issues` or `error`. The visitor can submit the form
 *   again.
 * - `submitted`: accepted by the service (202).
 */
export interface FormState {
  status: 'open' | 'sending' | 'failed' | 'submitted'
  issues?: FormIssues
  error?: WidgetErrorDetail
  /** Values that the visitor has submitted. Undefined after the service has accepted them. */
  fields?: Readonly<Record<string, string>>
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

/** A conversation event that is not a message. */
export interface Activity {
  key: string
  type:
    | 'agent.assigned'
    | 'agent.unassigned'
    | 'conversation.closed'
    | 'conversation.reopened'
    | 'form.submitted'
    /** The request was answered elsewhere, for example in another tab. */
    | 'request.resolved'
    | `navigation.${NavigationOutcome | 'expired' | 'cancelled'}`
    | `screenshot.${'uploaded' | 'denied' | 'unsupported' | 'expired' | 'cancelled'}`
  /** Display name of the agent. Set only for `agent.assigned` and `agent.unassigned`. */
  agentName?: string
  /** Mail address or telephone number that the visitor left. Set only for `form.submitted`. */
  address?: string
  /** Sequence of the message after which the activity is shown. */
  sequence: number
  /** Time of the event, in RFC 3339 format. */
  at: string
}

/** The assigned agent and typing indicators. */
export interface Presence {
  agent?: Agent
  /** The agents who are typing now. */
  typing: readonly MessageAuthor[]
  isClosed: boolean
  /** State of the closed conversation's rating. Undefined if no rating is asked for. */
  rating?: RatingState
}

export type NavigationOutcome = NavigationAcknowledgement['outcome']

export type ScreenshotConsent = ScreenshotAcknowledgement['consent']

/** Limits of an upload. After `expiresAt`, the service rejects it. */
export type UploadTerms = NonNullable<AcknowledgedScreenshot['upload']>

/** A pending navigation or screenshot request of an agent. */
export interface AgentRequest {
  /** Id of the request: the `commandId` of a navigation or the `requestId` of a screenshot. */
  id: string
  kind: 'navigation' | 'screenshot'
  /**
   * URL to navigate to. It is an http or https URL, because the client refuses requests with other
   * URLs.
   */
  url?: string
  label?: string
  /** Text that says why the agent asks for a screenshot. */
  purpose?: string
  /** Time at which the request expires, in milliseconds of the browser's clock. */
  expiresAtMs: number
  /**
   * State of a request that has not ended. `requested`: the visitor has not answered. `accepted`:
   * the page is about to navigate. `granted`: the visitor allowed the screenshot, which is not
   * uploaded yet.
   */
  state: 'requested' | 'accepted' | 'granted'
  /** Limits of the screenshot's upload. Set once the visitor has allowed the screenshot. */
  upload?: UploadTerms
}
