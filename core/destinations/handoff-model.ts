export const handoffWhens = ['accepted', 'failed', 'ended'] as const
/** Result of a delivery that causes its hand-off. `ended` means any result. */
export type HandoffWhen = (typeof handoffWhens)[number]

/** The workflow to which a subscription hands off its deliveries when they end. */
export interface Workflow {
  workflowId: string
  when: HandoffWhen
}

export interface HandsOff {
  /** Workflow of new deliveries. Its id is empty if it was removed. */
  workflow?: Workflow
}

export interface Handoff {
  workflowId: string
  outcome: 'accepted' | 'failed'
  at: Date
}

/** What a delivery has for the event feed. */
export interface FeedFields {
  /** Set by the write that ends the delivery, until the feed has the entries of the end. */
  unannounced?: true
  /** Number of attempts whose ends have entries. */
  announcedAttempts?: number
  /** The subscription's workflow when the delivery was created. */
  workflow?: Workflow
  /** The one hand-off of the delivery. */
  handoff?: Handoff
}
