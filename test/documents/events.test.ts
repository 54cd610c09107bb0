import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { EventName } from '../../contract/event-categories.ts'
import { eventCategories } from '../../contract/event-categories.ts'
import { type EventType, endsSession, isVisible, type LogEvent, type VisibleType } from '../../core/log-event.ts'
import { encodeEvent } from '../../core/streams/model.ts'
import { eventsDocument } from '../../dev/make/events.ts'
import { eventDefinitions, eventSchema } from '../../gateway/schemas/events.ts'
import { isKnownCommand, isKnownSecurity } from '../../widget/src/vocabulary/errors.ts'
import { validatorOf } from '../support/json-schema.ts'

const root = join(import.meta.dirname, '../..')
const families = 'message|typing|agent|session|visitor|connection|navigation|screenshot|conversation|rating|replay'
const names = Object.keys(eventDefinitions) as EventName[]

describe('the events that a core can write', () => {
  it('every event that a core can write is defined under the name that the source uses', () => {
    const written = new Set<string>()
    // Skips stores and fields of stored messages, because paths of stored fields look like event
    // names; the event feed, because it has types of its own; and `agent.curl`, a file name.
    for (const file of globSync('core/**/*.ts', {
      cwd: root,
      exclude: [
        '**/*.test.ts',
        'core/test/**',
        'core/**/*-store.ts',
        'core/database/**',
        'core/feed/**',
        'core/rpc/events.ts',
      ],
    })) {
      const source = readFileSync(join(root, file), 'utf8')
      for (const [, name = ''] of source.matchAll(
        new RegExp(`'((?!agent\\.curl|message\\.(?:body|ended|state)')(?:${families})(?:\\.[a-z]+)+)'`, 'g'),
      ))
        written.add(name)
    }
    // `availability.changed` and `message.grew` have no sequence. No log has them.
    const isLogged = (name: string) => eventDefinitions[name as EventName]?.sequenced !== false
    const logged = names.filter((name) => eventDefinitions[name].sequenced)
    const visible = [...written].filter((name) => isVisible(name as EventType) && isLogged(name))
    expect(visible.sort()).toEqual(logged.sort())
  })

  it('an event ends its session if, and only if, it is defined as terminal', () => {
    for (const name of names.filter((each) => each !== 'replay.reset.required'))
      expect(endsSession(name as VisibleType), name).toBe(eventDefinitions[name].terminal === 'always')
  })

  it('every event that a core can write is encoded in the shape that its schema defines', () => {
    const occurredAt = new Date(0)
    const message = {
      messageId: 'msg_1',
      clientOperationId: 'op-1',
      sessionId: 'ses_1',
      author: { kind: 'visitor' },
      body: 'Hi',
      contentType: 'text',
      state: 'queued',
    } as const
    const author = { kind: 'agent', displayName: 'Ada' } as const
    const agent = { displayName: 'Ada', avatarUrl: 'https://shop.example/ada.png' }
    const expiresAt = occurredAt.toISOString()
    const written: Record<VisibleType, Pick<LogEvent, 'message' | 'data'>> = {
      'message.accepted': { message },
      'message.received': {
        message: { messageId: 'msg_2', author, body: 'Hi', contentType: 'text', state: 'sent', quickReplies: ['Yes'] },
      },
      'message.completed': {
        message: { messageId: 'msg_3', author, body: 'Hi', contentType: 'text', state: 'sent' },
      },
      'message.state.changed': { data: { messageId: 'msg_1', clientOperationId: 'op-1', state: 'read' } },
      'message.redacted': { data: { messageId: 'msg_1' } },
      'typing.started': { data: { author } },
      'typing.stopped': { data: { author } },
      'agent.assigned': { data: { agent } },
      'agent.unassigned': { data: { agent } },
      'conversation.closed': {},
      'rating.requested': {},
      'rating.given': { data: { score: 4, comment: 'Quick' } },
      'conversation.reopened': {},
      'navigation.requested': { data: { commandId: 'cmd_1', url: 'https://shop.example/', expiresAt } },
      'navigation.cancelled': { data: { commandId: 'cmd_1' } },
      'screenshot.requested': { data: { requestId: 'scr_1', purpose: 'To see it', expiresAt } },
      'screenshot.cancelled': { data: { requestId: 'scr_1' } },
      'session.identified': {},
      'session.closed': {},
      'session.expired': {},
      'session.revoked': {},
      'visitor.banned': {},
      'connection.disabled': {},
    }
    for (const [type, content] of Object.entries(written) as [VisibleType, object][]) {
      const event: LogEvent & { type: VisibleType } = {
        conversationId: 'cnv_1',
        sequence: 1,
        type,
        occurredAt,
        ...content,
      }
      const problems = validatorOf(eventSchema(event.type))
      expect(problems(JSON.parse(encodeEvent(event))), type).toEqual([])
      expect(problems({ ...JSON.parse(encodeEvent(event)), internal: 1 })).not.toEqual([])
    }
  })
})

it('docs/events.md is up to date', () => {
  expect(readFileSync(join(root, 'docs/events.md'), 'utf8')).toBe(eventsDocument())
})

it('the browser package handles each security event and command that the service sends', () => {
  for (const [type, category] of Object.entries(eventCategories)) {
    if (category === 'security') expect(isKnownSecurity(type), type).toBe(true)
    if (category === 'command') expect(isKnownCommand(type), type).toBe(true)
  }
})
