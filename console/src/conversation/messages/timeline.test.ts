import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { InboxEventSchema, MessageSchema, NoteSchema } from '#proto/messaging/v1/messaging_pb.js'
import { ConsentDecision, ConsentRecordSchema } from '#proto/session/v1/session_pb.js'
import { buildTimeline } from './timeline.ts'

const at = (seconds: number) => timestampFromMs(seconds * 1000)
const message = (sequence: number) =>
  create(MessageSchema, { messageId: `m${sequence}`, sequence, createdAt: at(sequence), body: `m${sequence}` })
const event = (sequence: number, type: string, more: MessageInitShape<typeof InboxEventSchema> = {}) =>
  create(InboxEventSchema, { sequence, type, occurredAt: at(sequence), ...more })
const none = { events: [], notes: [], consent: undefined, hasOlder: false, me: 'Ada' }

const textsOf = (parts: Partial<Parameters<typeof buildTimeline>[0]>) =>
  buildTimeline({ ...none, messages: [], ...parts }).map((item) =>
    item.kind === 'message' ? item.message.body : item.kind === 'note' ? `note ${item.note.body}` : item.text,
  )

describe('the timeline of a conversation', () => {
  it('has messages and events in the order of the log, even if a later entry has an earlier time', () => {
    const late = create(MessageSchema, { messageId: 'm3', sequence: 3, createdAt: at(1), body: 'm3' })
    const events = [event(2, 'agent.assigned', { agent: { displayName: 'Ada' } }), event(4, 'conversation.closed')]
    expect(textsOf({ messages: [message(1), late], events })).toEqual([
      'm1',
      'Assigned to you',
      'm3',
      'Conversation closed',
    ])
  })

  it('has notes and consents, in the order of their times', () => {
    const note = create(NoteSchema, { noteId: 'n', body: 'call back', createdAt: at(15) })
    const consent = create(ConsentRecordSchema, { decision: ConsentDecision.GRANTED, decidedAt: at(5) })
    const events = [event(20, 'navigation.requested', { label: 'Prices' })]
    const messages = [message(10), message(30)]
    expect(textsOf({ messages, events, notes: [note], consent })).toEqual([
      'Consent granted',
      'm10',
      'note call back',
      'Page suggested: Prices',
      'm30',
    ])
  })

  it('leaves out entries that are older than the first loaded message, and events of unknown types', () => {
    const note = create(NoteSchema, { noteId: 'n', body: 'old', createdAt: at(2) })
    const events = [event(3, 'conversation.closed'), event(11, 'agent.unassigned', { agent: { displayName: 'Jonas' } })]
    const unknown = event(12, 'something.new')
    const parts = { messages: [message(10)], events: [...events, unknown], notes: [note], hasOlder: true }
    expect(textsOf(parts)).toEqual(['m10', 'Jonas was unassigned'])
  })
})
