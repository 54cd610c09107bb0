import type { SessionEnd } from '../../client/types.ts'

/**
 * All texts of the user interface. The title and greeting are used only if the installation does not
 * define them.
 */
export interface WidgetTexts {
  title: string
  greeting: string
  openLauncher: string
  /**
   * Label of the launcher if there are unread messages or requests of agents. `count` is their
   * number, 1 or more.
   */
  openLauncherUnread: (count: number) => string
  closePanel: string
  log: string
  composerLabel: string
  composerPlaceholder: string
  send: string
  online: string
  /** @param time a number of minutes or hours */
  usualAnswer: (time: string) => string
  away: string
  connecting: string
  reconnecting: string
  ended: string
  you: string
  agent: string
  sending: string
  retrying: string
  sent: string
  delivered: string
  read: string
  notSent: string
  retry: string
  typing: (name: string) => string
  newMessages: string
  /** Says that an agent has answered, in the title of the page and for screen readers. */
  replied: (name: string) => string
  /** Label of the button that closes the card of a new answer. */
  closeAnswer: string
  /** Label of the button that turns the sound of new answers on. */
  answerSound: string
  /** Shown instead of the text of a message that an operator has withdrawn. */
  withdrawn: string
  toLatest: string
  /** Status text while an agent is assigned. `name` is the agent's name. */
  chattingWith: (name: string) => string
  loadingOlder: string
  opensInNewTab: string
  today: string
  yesterday: string
  tooLong: (limit: number) => string
  outboxFull: string
  startNew: string
  /** Shown instead of the message field if the session of an earlier page has ended. */
  previousEnded: string
  /**
   * Texts that state why the chat has ended. The panel shows them instead of the message field.
   * `unavailable` is used if the chat could not start.
   */
  endReasons: Record<SessionEnd | 'unavailable', string>
  waitingForNetwork: string
  waitingForConsent: string
  /** Text that screen readers announce if a message could not be sent. */
  notSentAnnouncement: (body: string) => string
  agentAssigned: (name: string) => string
  agentUnassigned: (name: string) => string
  conversationClosed: string
  conversationReopened: string
  formSubmitted: string
  /** Says from when operators answer. `when` has the day of the week and the time. */
  answersFrom: (when: string) => string
  leaveDetails: string

  // Texts of the rating and the transcript after the conversation was closed.
  ratingTitle: string
  /** Names of the five faces, from the worst to the best. */
  ratingScores: readonly string[]
  /** Label of the optional line of text. */
  ratingComment: string
  ratingSend: string
  ratingThanks: string
  ratingFailed: string
  /** Label of the button that saves the conversation as a text file. */
  transcriptSave: string
  transcriptSaving: string
  transcriptFailed: string

  navigationTitle: (name: string) => string
  screenshotTitle: (name: string) => string
  requestResolved: string

  // Texts of forms.
  preChatTitle: string
  preChatIntro: string
  offlineTitle: string
  offlineIntro: string
  optional: string
  /**
   * Texts that explain why a field is invalid, by violated rule. `email` and `tel` explain the
   * expected format; `other` is used for rules without a text.
   */
  fieldProblems: Record<'required' | 'email' | 'tel' | 'other', string> & { maxLength: (limit: number) => string }
  formFailed: string
  /** Shown if the visitor must not be contacted, so that a retry cannot succeed. */
  formSuppressed: string
  submitPreChat: string
  submitOffline: string
  submitting: string
  skipForm: string
  writeInstead: string

  // Texts of the consent step.
  consentTitle: string
  consentExplained: string
  /** Added to `consentExplained` while messages or a form wait for the visitor's decision. */
  consentHolding: string
  /** Text of the link to the policy. */
  consentPolicy: string
  consentAgree: string
  consentDecline: string
  consentSaving: string
  consentDeclined: string
  consentReview: string
  consentFailed: string

  // Texts of the cards of agents' requests.
  /** Lines in the message log that state the outcome of an agent's request. */
  requestOutcomes: Record<
    'navigation' | 'screenshot',
    Partial<Record<'declined' | 'denied' | 'completed' | 'failed' | 'uploaded' | 'expired' | 'cancelled', string>>
  >
  opensPage: string
  leavesSite: (host: string) => string
  goToPage: string
  noThanks: string
  opening: string
  screenshotExplained: string
  shareScreen: string
  chooseImage: string
  screenshotPreview: string
  sendScreenshot: string
  discard: string
  uploading: (percent: number) => string
  stop: string
  /** Text with the time left to answer. `time` contains minutes and seconds, for example 1:45. */
  expiresIn: (time: string) => string
  requestProblems: Record<'notStarted' | 'notAnImage' | 'tooLarge' | 'notAnswered' | 'notUploaded' | 'expired', string>
}
