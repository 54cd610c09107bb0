import type { SessionEnd } from '../../vocabulary/types.ts'

/**
 * The English texts. Their keys are those of the options `texts` and `localeTexts`. The title and
 * greeting are used only if the installation does not define them.
 */
export const englishTexts = {
  title: 'Chat with us',
  greeting: 'Hi! How can we help?',
  openLauncher: 'Open chat',
  /** `count` is the number of unread messages and requests, 1 or more. */
  openLauncherUnread: (count: number) => `Open chat, ${count} unread ${count === 1 ? 'message' : 'messages'}`,
  closePanel: 'Close chat',
  log: 'Conversation',
  composerLabel: 'Your message',
  composerPlaceholder: 'Write a message…',
  send: 'Send message',
  online: 'We are online',
  /** @param time a number of minutes or hours */
  usualAnswer: (time: string) => `Usually answers within ${time}`,
  away: 'We are away and will reply later',
  /** Shown instead of `away` if visitors can leave an address. */
  awayByMail: 'We are away and answer by mail',
  connecting: 'Connecting…',
  reconnecting: 'Connection lost. Reconnecting…',
  ended: 'Chat ended',
  you: 'You',
  agent: 'Support',
  /** Follows the name of a bot. */
  assistant: 'Assistant',
  sending: 'Sending…',
  retrying: 'Not sent yet. Trying again…',
  sent: 'Sent',
  delivered: 'Delivered',
  read: 'Read',
  notSent: 'Not sent',
  retry: 'Retry',
  typing: (name: string) => `${name} is typing`,
  newMessages: 'New messages',
  /** Says that an agent has answered, in the title of the page and for screen readers. */
  replied: (name: string) => `${name} replied`,
  /** Label of the button that closes the card of a new answer. */
  closeAnswer: 'Close preview',
  /** Label of the button that turns the sound of new answers on. */
  answerSound: 'Sound for new answers',
  /** Shown below an answer that its bot has not completed. */
  answerEnds: { stopped: 'Answer stopped.', interrupted: 'Answer incomplete.' },
  /** Shown instead of the text of a message that an operator has withdrawn. */
  withdrawn: 'This message was withdrawn.',
  toLatest: 'To the latest message',
  /** Status text while an agent is assigned. `name` is the agent's name. */
  chattingWith: (name: string) => `You’re chatting with ${name}`,
  loadingOlder: 'Loading earlier messages…',
  opensInNewTab: 'opens in a new tab',
  today: 'Today',
  yesterday: 'Yesterday',
  tooLong: (limit: number) => `Please keep it under ${limit} characters.`,
  outboxFull: 'Too many messages are waiting to be sent.',
  startNew: 'Start a new chat',
  /** Shown instead of the message field if the session of an earlier page has ended. */
  previousEnded: 'Your previous chat has ended.',
  /** Shown instead of the message field. `unavailable`: the chat could not start. */
  endReasons: {
    'session.expired': 'This chat has timed out.',
    'session.closed': 'This chat has ended.',
    'session.revoked': 'This chat was ended by the site.',
    'visitor.banned': 'You can no longer send messages here.',
    'connection.disabled': 'Chat is switched off on this site at the moment.',
    'replay.reset.required': 'Please sign in again to go on with this chat.',
    unavailable: 'Chat is not available at the moment.',
  } satisfies Record<SessionEnd | 'unavailable', string>,
  waitingForNetwork: 'Will be sent when you are back online',
  waitingForConsent: 'Waits for your consent',
  /** Text that screen readers announce if a message could not be sent. */
  notSentAnnouncement: (body: string) => `Could not be sent: ${body}`,
  agentAssigned: (name: string) => `${name} joined the chat`,
  agentUnassigned: (name: string) => `${name} has left this chat`,
  conversationClosed: 'This chat was marked as done. Write a message to open it again.',
  conversationReopened: 'This chat is open again.',
  formSubmitted: 'We got your details.',
  /** Says from when operators answer. `when` has the day of the week and the time. */
  answersFrom: (when: string) => `We answer from ${when}.`,
  ratingTitle: 'How was this chat?',
  /** Names of the five faces, from the worst to the best. */
  ratingScores: ['Very bad', 'Bad', 'Okay', 'Good', 'Very good'] as readonly string[],
  /** Label of the optional line of text. */
  ratingComment: 'Anything to add?',
  ratingSend: 'Send rating',
  ratingThanks: 'Thank you for your rating.',
  ratingFailed: 'Your rating was not sent. Please try again.',
  /** Label of the button that saves the conversation as a text file. */
  transcriptSave: 'Save transcript',
  transcriptSaving: 'Saving…',
  transcriptFailed: 'The transcript was not saved. Please try again.',
  leaveDetails: 'Leave your details instead',
  navigationTitle: (name: string) => `${name} suggests a page`,
  screenshotTitle: (name: string) => `${name} asks for a screenshot`,
  requestResolved: 'This request has been answered already.',
  preChatTitle: 'Before we start',
  preChatIntro: 'A few details help us to answer you well.',
  offlineTitle: 'We are away at the moment',
  offlineIntro: 'Leave us your details and we will get back to you.',
  optional: 'optional',
  /** Texts by violated rule; `other` is for rules without a text of their own. */
  fieldProblems: {
    required: 'Please fill this in.',
    email: 'Please enter an email address like name@example.com.',
    tel: 'Please enter a phone number like +43 660 1234567.',
    other: 'This is not accepted here. Please change it.',
    maxLength: (limit: number) => `Please keep it to ${limit} characters.`,
  },
  formFailed: 'Your details were not sent. Please try again.',
  /** Shown if the visitor must not be contacted, so that a retry cannot succeed. */
  formSuppressed: 'We cannot contact you at these details. Please write a message instead.',
  submitPreChat: 'Start chat',
  submitOffline: 'Send details',
  submitting: 'Sending…',
  skipForm: 'Skip',
  writeInstead: 'Write a message instead',
  consentTitle: 'Your consent',
  consentExplained: 'We need your consent to process what you write here.',
  /** Added to `consentExplained` while messages or a form wait for the visitor's decision. */
  consentHolding: 'What you have sent waits until you decide.',
  /** Text of the link to the policy. */
  consentPolicy: 'Read the privacy policy',
  consentAgree: 'I agree',
  consentDecline: 'Decline',
  consentSaving: 'Saving…',
  consentDeclined: 'You declined. You can read this chat. To write, please agree first.',
  consentReview: 'Decide again',
  consentFailed: 'Your decision was not saved. Please try again.',
  /** Lines in the message log that state the outcome of an agent's request. */
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
  } as Record<'navigation' | 'screenshot', Partial<Record<RequestOutcome, string>>>,
  opensPage: 'Opens in this tab.',
  leavesSite: (host: string) => `This takes you away from this site, to ${host}.`,
  goToPage: 'Go to page',
  noThanks: 'No thanks',
  opening: 'Opening the page…',
  screenshotExplained:
    'Only the team that answers you here will see it. You see the picture first; nothing is shared before you send it.',
  shareScreen: 'Share screen',
  chooseImage: 'Choose a picture',
  screenshotPreview: 'This is exactly what will be sent.',
  sendScreenshot: 'Send picture',
  discard: 'Discard',
  uploading: (percent: number) => `Sending the picture, ${percent} %`,
  stop: 'Stop',
  talkToPerson: 'Talk to a person',
  askingColleague: 'We are asking a colleague.',
  /** Text with the time left to answer. `time` contains minutes and seconds, for example 1:45. */
  expiresIn: (time: string) => `Expires in ${time}`,
  requestProblems: {
    notStarted: 'Nothing was captured. Try again, or choose a picture.',
    notAnImage: 'Please choose a PNG, JPEG or WebP picture.',
    tooLarge: 'This picture is too large.',
    notAnswered: 'Your answer did not get through. Please try again.',
    notUploaded: 'The picture was not sent. Please try again.',
    expired: 'This request has expired.',
  },
}

export type WidgetTexts = typeof englishTexts

type RequestOutcome = 'declined' | 'denied' | 'completed' | 'failed' | 'uploaded' | 'expired' | 'cancelled'
