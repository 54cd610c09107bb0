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
}
