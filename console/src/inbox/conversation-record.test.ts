import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import {
  AgentSchema,
  type Conversation,
  ConversationBotSchema,
  ConversationSchema,
  ConversationStatus,
  InboxEventSchema,
  MessageSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { isUnread, patched, visitorName } from './conversation-record.ts'

const message = (sequence: number, kind = 'visitor', state = 'sent') =>
  create(MessageSchema, { messageId: `msg_${sequence}`, sequence, author: { kind }, body: `m${sequence}`, state })
const conversation = (lastSequence: number, more: MessageInitShape<typeof ConversationSchema> = {}) =>
  create(ConversationSchema, {
    conversationId: 'cnv_1',
    lastSequence,
    lastMessageAt: timestampFromMs(lastSequence * 1000),
    status: ConversationStatus.OPEN,
    ...more,
  })
const event = (sequence: number, more: MessageInitShape<typeof InboxEventSchema>) =>
  create(InboxEventSchema, { sequence, ...more })

describe('the record of a conversation', () => {
  it('a conversation that has only a form is unread while the visitor waits', () => {
    expect(isUnread(conversation(1, { waitingSince: timestampFromMs(1_000) }))).toBe(true)
    expect(isUnread(conversation(1))).toBe(false)
  })

  it('a conversation whose bot has asked for a person is unread until an agent is assigned or answers, or it is closed', () => {
    const bot = create(ConversationBotSchema, { stopped: true, humanRequestedAt: timestampFromMs(1_000) })
    const unread = (more: Partial<Conversation>) =>
      isUnread({ ...conversation(2, { bot, lastMessage: message(2, 'bot') }), ...more })
    expect(unread({})).toBe(true)
    expect(unread({ agent: create(AgentSchema, { displayName: 'Ada' }) })).toBe(false)
    expect(unread({ lastMessage: message(3, 'agent') })).toBe(false)
    expect(unread({ status: ConversationStatus.CLOSED })).toBe(false)
    expect(unread({ bot: create(ConversationBotSchema, { stopped: true }) })).toBe(false)
  })

  it('a conversation is unread until its last message is read or answered, even if the state `delivered` arrives late', () => {
    const start = conversation(1, { lastMessage: message(1) })
    expect(isUnread(start)).toBe(true)
    const state = (to: string, from: Conversation) =>
      patched(from, {
        conversation: conversation(1),
        events: [event(2, { type: 'message.state.changed', messageId: 'msg_1', state: to })],
      })
    const read = state('read', start)
    expect(isUnread(read)).toBe(false)
    expect(isUnread(state('delivered', read))).toBe(false)
    const answered = { conversation: conversation(2), events: [event(2, { message: message(2, 'agent') })] }
    expect(isUnread(patched(start, answered))).toBe(false)
    expect(patched(patched(start, answered), answered)).toEqual(patched(start, answered))
  })

  it('an anonymous visitor is shown as `Visitor` with the end of the conversation ID', () => {
    expect(visitorName(conversation(1, { conversationId: 'cnv_x7f3' }))).toBe('Visitor X7F3')
    expect(visitorName(conversation(1, { visitor: { externalSubject: 'c-1' } }))).toBe('c-1')
    expect(visitorName(conversation(1, { contact: { leadId: 'l', name: 'Mia', email: 'mia@x.org' } }))).toBe('Mia')
    expect(visitorName(conversation(1, { contact: { leadId: 'l', email: 'mia@x.org' } }))).toBe('mia@x.org')
  })

  it('keeps the contact of a conversation when a change arrives', () => {
    const known = conversation(1, { contact: { leadId: 'l', name: 'Mia' } })
    expect(patched(known, { conversation: conversation(2), events: [] }).contact?.name).toBe('Mia')
  })
})
