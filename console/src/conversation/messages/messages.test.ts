import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { MessageSchema } from '#proto/messaging/v1/messaging_pb.js'
import { mergeMessages, stateText, withdrawn } from './messages.ts'

const answer = (fields: object) => create(MessageSchema, { messageId: 'msg_1', author: { kind: 'bot' }, ...fields })

it('an answer that was stopped or interrupted says so beside its state, until it is withdrawn', () => {
  expect(stateText(answer({ state: 'read' }))).toBe('Read')
  expect(stateText(answer({ state: 'sent', ended: 'interrupted' }))).toBe('Interrupted · Sent')
  const stopped = answer({ state: 'read', ended: 'stopped' })
  expect(stateText(stopped)).toBe('Stopped by the visitor · Read')
  expect(stateText(withdrawn(stopped, undefined))).toBe('Read')
})

it('a message that is read again keeps its later state, and a withdrawn one stays withdrawn', () => {
  const growing = answer({ body: 'One', growing: true, state: 'read' })
  const ended = answer({ body: 'One two', ended: 'stopped', state: 'sent' })
  const [merged, ...others] = mergeMessages([growing], [ended])
  expect(others).toEqual([])
  expect(merged).toMatchObject({ body: 'One two', ended: 'stopped', state: 'read' })
  expect(mergeMessages([ended], [growing])).toEqual([ended])
  const redacted = withdrawn(ended, { $typeName: 'google.protobuf.Timestamp', seconds: 1n, nanos: 0 })
  expect(mergeMessages([redacted], [ended])).toEqual([redacted])
})
