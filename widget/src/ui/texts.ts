import type { SessionEnd } from '../types.ts'

/** What the chat says by itself. Where the installation has a title and a greeting, those are shown instead. */
export interface ChatTexts {
  title: string
  greeting: string
  openLauncher: string
  /** `count` is 1 or more. */
  openLauncherUnread: (count: number) => string
  closePanel: string
  log: string
  composerLabel: string
  composerPlaceholder: string
  send: string
  online: string
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
  toLatest: string
  /** Tells who looks after the conversation. */
  chattingWith: (name: string) => string
  loadingOlder: string
  opensInNewTab: string
  today: string
  yesterday: string
  tooLong: (limit: number) => string
  outboxFull: string
  startNew: string
  /** Stands above a new chat that began after the site's chat was disabled. */
  previousEnded: string
  /** Told in place of the composer when the chat cannot go on. `unavailable`: it could not begin. */
  endReasons: Record<SessionEnd | 'unavailable', string>
  waitingForNetwork: string
  /** For screen readers, when a message could not be sent. */
  notSentAnnouncement: (body: string) => string
  agentAssigned: (name: string) => string
  agentUnassigned: (name: string) => string
  conversationClosed: string
  conversationReopened: string
  formSubmitted: string
  leaveDetails: string
  navigationTitle: (name: string) => string
  screenshotTitle: (name: string) => string
  requestResolved: string
}

/** What a form says. */
export interface FormTexts {
  preChatTitle: string
  preChatIntro: string
  offlineTitle: string
  offlineIntro: string
  optional: string
  /** By the rule that is broken; `email` and `tel` tell what is expected, `other` is for any other. */
  fieldProblems: Record<'required' | 'email' | 'tel' | 'other', string> & { maxLength: (limit: number) => string }
  formFailed: string
  submitPreChat: string
  submitOffline: string
  submitting: string
  skipForm: string
  writeInstead: string
  consentLine: string
  privacyPolicy: string
}

/** What an agent's request says. */
export interface RequestTexts {
  /** Lines of the log that tell what became of an agent's request. */
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
  /** `time` is minutes and seconds, for example 1:45. */
  expiresIn: (time: string) => string
  requestProblems: Record<'notStarted' | 'notAnImage' | 'tooLarge' | 'notAnswered' | 'notUploaded' | 'expired', string>
}

/** Every text of the user interface. */
export interface WidgetTexts extends ChatTexts, FormTexts, RequestTexts {}

/** The texts at hand when the chat is opened. English comes in parts: forms and requests bring what they say with them. */
export type ShownTexts = ChatTexts & Partial<WidgetTexts>
