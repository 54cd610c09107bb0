import type { SessionEnd } from '../types.ts'

/** Every text of the user interface. Where the installation has a title and a greeting, those are shown instead. */
export interface WidgetTexts {
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
  /** Lines of the log that tell what became of an agent's request. */
  requestOutcomes: Record<
    'navigation' | 'screenshot',
    Partial<Record<'declined' | 'denied' | 'completed' | 'failed' | 'uploaded' | 'expired' | 'cancelled', string>>
  >
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
  leaveDetails: string
  consentLine: string
  privacyPolicy: string
  navigationTitle: (name: string) => string
  opensPage: string
  leavesSite: (host: string) => string
  goToPage: string
  noThanks: string
  opening: string
  screenshotTitle: (name: string) => string
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
  requestProblems: Record<
    'notStarted' | 'notAnImage' | 'tooLarge' | 'notAnswered' | 'notUploaded' | 'expired' | 'resolved',
    string
  >
}

export const englishTexts: WidgetTexts = {
  title: 'Chat with us',
  greeting: 'Hi! How can we help?',
  openLauncher: 'Open chat',
  openLauncherUnread: (count) => `Open chat, ${count} unread ${count === 1 ? 'message' : 'messages'}`,
  closePanel: 'Close chat',
  log: 'Conversation',
  composerLabel: 'Your message',
  composerPlaceholder: 'Write a message…',
  send: 'Send message',
  online: 'We are online',
  away: 'We are away and will reply later',
  connecting: 'Connecting…',
  reconnecting: 'Connection lost. Reconnecting…',
  ended: 'Chat ended',
  you: 'You',
  agent: 'Support',
  sending: 'Sending…',
  retrying: 'Not sent yet. Trying again…',
  sent: 'Sent',
  delivered: 'Delivered',
  read: 'Read',
  notSent: 'Not sent',
  retry: 'Retry',
  typing: (name) => `${name} is typing`,
  newMessages: 'New messages',
  toLatest: 'To the latest message',
  chattingWith: (name) => `You’re chatting with ${name}`,
  loadingOlder: 'Loading earlier messages…',
  opensInNewTab: 'opens in a new tab',
  today: 'Today',
  yesterday: 'Yesterday',
  tooLong: (limit) => `Please keep it under ${limit} characters.`,
  outboxFull: 'Too many messages are waiting to be sent.',
  startNew: 'Start a new chat',
  endReasons: {
    'session.expired': 'This chat has timed out.',
    'session.closed': 'This chat has ended.',
    'session.revoked': 'This chat was ended by the site.',
    'visitor.banned': 'You can no longer send messages here.',
    'connection.disabled': 'Chat is switched off on this site at the moment.',
    'replay.reset.required': 'Please sign in again to go on with this chat.',
    unavailable: 'Chat is not available at the moment.',
  },
  waitingForNetwork: 'Will be sent when you are back online',
  notSentAnnouncement: (body) => `Could not be sent: ${body}`,
  agentAssigned: (name) => `${name} is now looking after you`,
  agentUnassigned: (name) => `${name} has left this chat`,
  conversationClosed: 'This chat was marked as done. Write a message to open it again.',
  conversationReopened: 'This chat is open again.',
  formSubmitted: 'We got your details.',
  requestOutcomes: {
    navigation: {
      declined: 'You stayed on this page.',
      completed: 'You went to the suggested page.',
      failed: 'The suggested page could not be opened.',
      expired: 'The suggestion of a page has expired.',
      cancelled: 'The suggestion of a page was taken back.',
    },
    screenshot: {
      uploaded: 'You sent a screenshot.',
      denied: 'You did not share a screenshot.',
      expired: 'The request for a screenshot has expired. Nothing was sent.',
      cancelled: 'The request for a screenshot was taken back. Nothing was sent.',
    },
  },
  preChatTitle: 'Before we start',
  preChatIntro: 'A few details help us to answer you well.',
  offlineTitle: 'We are away at the moment',
  offlineIntro: 'Leave us your details and we will get back to you.',
  optional: 'optional',
  fieldProblems: {
    required: 'Please fill this in.',
    email: 'Please enter an email address like name@example.com.',
    tel: 'Please enter a phone number, digits only.',
    other: 'This is not accepted here. Please change it.',
    maxLength: (limit) => `Please keep it to ${limit} characters.`,
  },
  formFailed: 'Your details were not sent. Please try again.',
  submitPreChat: 'Start chat',
  submitOffline: 'Send details',
  submitting: 'Sending…',
  skipForm: 'Skip',
  writeInstead: 'Write a message instead',
  leaveDetails: 'Leave your details instead',
  consentLine: 'By sending this you agree that we use these details to answer you.',
  privacyPolicy: 'Privacy policy',
  navigationTitle: (name) => `${name} suggests a page`,
  opensPage: 'Opens in this tab.',
  leavesSite: (host) => `This takes you away from this site, to ${host}.`,
  goToPage: 'Go to page',
  noThanks: 'No thanks',
  opening: 'Opening the page…',
  screenshotTitle: (name) => `${name} asks for a screenshot`,
  screenshotExplained:
    'Only the team that answers you here will see it. You see the picture first; nothing is shared before you send it.',
  shareScreen: 'Share screen',
  chooseImage: 'Choose a picture',
  screenshotPreview: 'This is exactly what will be sent.',
  sendScreenshot: 'Send picture',
  discard: 'Discard',
  uploading: (percent) => `Sending the picture, ${percent} %`,
  stop: 'Stop',
  expiresIn: (time) => `Expires in ${time}`,
  requestProblems: {
    notStarted: 'Nothing was captured. Try again, or choose a picture.',
    notAnImage: 'Please choose a PNG, JPEG or WebP picture.',
    tooLarge: 'This picture is too large.',
    notAnswered: 'Your answer did not get through. Please try again.',
    notUploaded: 'The picture was not sent. Please try again.',
    expired: 'This request has expired.',
    resolved: 'This request has been answered already.',
  },
}
