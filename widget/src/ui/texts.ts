import type { SessionEnd } from '../types.ts'

/** Texts of the chat. The installation's title and greeting replace the ones here. */
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
  /** Names the assigned agent. */
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
  /** Shown instead of the composer after the end. `unavailable`: the chat could not begin. */
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

/** Texts of a form. */
export interface FormTexts {
  preChatTitle: string
  preChatIntro: string
  offlineTitle: string
  offlineIntro: string
  optional: string
  /** By broken rule. `email` and `tel` name the expected format; `other` is for all other rules. */
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

/** Texts of an agent's request. */
export interface RequestTexts {
  /** Lines of the log with the outcome of a request. */
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

/** Texts that are loaded with the chat. In English, texts of forms and requests are in their own chunks. */
export type ShownTexts = ChatTexts & Partial<WidgetTexts>
