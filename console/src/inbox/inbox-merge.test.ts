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
import {
  type Entries,
  isUnread,
  mergeChange,
  mergeList,
  type Queue,
  selectEntries,
  visitorName,
} from './inbox-merge.ts'

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

const none: Entries = new Map()
const listed = (entries: Entries) => entries.get('cnv_1')!.conversation

describe('the inbox list', () => {
  it('the inbox list ignores a list response that is older than a stream change', () => {
    const changed = mergeChange(
      mergeList(none, [conversation(1)], 0),
      { conversation: conversation(1, { status: ConversationStatus.CLOSED }), events: [] },
      1,
    )
    const late = mergeList(changed, [conversation(1, { visitor: { displayName: 'Maria' } })], 0)
    expect(listed(late)).toMatchObject({ status: ConversationStatus.CLOSED, visitor: { displayName: 'Maria' } })
    const newer = mergeList(late, [conversation(1)], 1)
    expect(listed(newer).status).toBe(ConversationStatus.OPEN)
  })

  it('the inbox list shows the latest message, whether the list response or the stream change arrives first', () => {
    const change = { conversation: conversation(3), events: [event(3, { message: message(3) })] }
    const list = [conversation(2, { lastMessage: message(2) })]
    const one = mergeList(mergeChange(none, change, 1), list, 0)
    const other = mergeChange(mergeList(none, list, 0), change, 1)
    expect(listed(one).lastMessage?.messageId).toBe('msg_3')
    expect(listed(other).lastMessage?.messageId).toBe('msg_3')
    expect(listed(mergeChange(other, change, 2))).toEqual(listed(other))
  })

  it('a conversation whose bot has asked for a person is unread until an agent is assigned or answers, or it is closed', () => {
    const bot = create(ConversationBotSchema, { stopped: true, humanRequestedAt: timestampFromMs(1_000) })
    const unread = (more: Partial<Conversation>) =>
      isUnread({ conversation: { ...conversation(2, { bot, lastMessage: message(2, 'bot') }), ...more }, revision: 0 })
    expect(unread({})).toBe(true)
    expect(unread({ agent: create(AgentSchema, { displayName: 'Ada' }) })).toBe(false)
    expect(unread({ lastMessage: message(3, 'agent') })).toBe(false)
    expect(unread({ status: ConversationStatus.CLOSED })).toBe(false)
    expect(unread({ bot: create(ConversationBotSchema, { stopped: true }) })).toBe(false)
  })

  it('a conversation is unread until its last message is read or answered, even if the state `delivered` arrives late', () => {
    const entries = mergeList(none, [conversation(1, { lastMessage: message(1) })], 0)
    expect(isUnread(entries.get('cnv_1')!)).toBe(true)
    const state = (to: string, from: Entries) =>
      mergeChange(
        from,
        {
          conversation: conversation(1),
          events: [event(2, { type: 'message.state.changed', messageId: 'msg_1', state: to })],
        },
        1,
      )
    const read = state('read', entries)
    expect(isUnread(read.get('cnv_1')!)).toBe(false)
    expect(isUnread(state('delivered', read).get('cnv_1')!)).toBe(false)
    const answered = mergeChange(
      entries,
      { conversation: conversation(2), events: [event(2, { message: message(2, 'agent') })] },
      1,
    )
    expect(isUnread(answered.get('cnv_1')!)).toBe(false)
  })

  it('the inbox list shows a typing visitor until a stop event or a message, and ignores typing agents', () => {
    const typing = (type: string, kind: string) => event(5, { type, author: { kind }, occurredAt: timestampFromMs(5) })
    const start = mergeList(none, [conversation(1, { lastMessage: message(1) })], 0)
    const step = (entries: Entries, one: ReturnType<typeof event>) =>
      mergeChange(entries, { conversation: conversation(1), events: [one] }, 1)
    const types = step(start, typing('typing.started', 'visitor'))
    expect(types.get('cnv_1')!.typingSince).toBe(5)
    expect(step(types, typing('typing.stopped', 'visitor')).get('cnv_1')).not.toHaveProperty('typingSince')
    expect(step(types, event(6, { message: message(6) })).get('cnv_1')).not.toHaveProperty('typingSince')
    expect(step(types, event(6, { message: message(6, 'agent') })).get('cnv_1')!.typingSince).toBe(5)
    expect(step(start, typing('typing.started', 'agent')).get('cnv_1')!.typingSince).toBeUndefined()
  })

  it('a queue has the conversations of its kind: unanswered ones by waiting time, others by their last message', () => {
    const waitingSince = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 })
    const entries = mergeList(
      none,
      [
        conversation(1, { conversationId: 'cnv_a', agent: { displayName: 'Ada' } }),
        conversation(3, { conversationId: 'cnv_b', waitingSince: waitingSince(2) }),
        conversation(2, { conversationId: 'cnv_c', status: ConversationStatus.CLOSED }),
        conversation(5, { conversationId: 'cnv_d', waitingSince: waitingSince(1), agent: { displayName: 'Jonas' } }),
      ],
      0,
    )
    const ids = (queue: Queue) => selectEntries(entries, queue, 'Ada').map((entry) => entry.conversation.conversationId)
    expect(ids('open')).toEqual(['cnv_d', 'cnv_b', 'cnv_a'])
    expect(ids('unanswered')).toEqual(['cnv_d', 'cnv_b'])
    expect(ids('mine')).toEqual(['cnv_a'])
    expect(ids('unassigned')).toEqual(['cnv_b'])
    expect(ids('closed')).toEqual(['cnv_c'])
  })

  it('the inbox list shows an anonymous visitor as `Visitor` with the end of the conversation ID', () => {
    expect(visitorName(conversation(1, { conversationId: 'cnv_x7f3' }))).toBe('Visitor X7F3')
    expect(visitorName(conversation(1, { visitor: { externalSubject: 'c-1' } }))).toBe('c-1')
    expect(visitorName(conversation(1, { contact: { leadId: 'l', name: 'Mia', email: 'mia@x.org' } }))).toBe('Mia')
    expect(visitorName(conversation(1, { contact: { leadId: 'l', email: 'mia@x.org' } }))).toBe('mia@x.org')
  })

  it('the inbox list keeps the contact of a conversation when a change arrives', () => {
    const listedFirst = mergeList(none, [conversation(1, { contact: { leadId: 'l', name: 'Mia' } })], 0)
    const changed = mergeChange(listedFirst, { conversation: conversation(2), events: [] }, 1)
    expect(listed(changed).contact?.name).toBe('Mia')
  })
})
