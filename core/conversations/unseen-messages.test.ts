import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { submitForm } from '../deliveries/lead-capture.ts'
import { redactMessage } from '../deliveries/redactions.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import type { LogEvent } from '../log-event.ts'
import { append } from '../test/bots.ts'
import { hasFailed, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { inboxOf } from './inbox.ts'
import { recordReceipt } from './message-states.ts'
import { sendAsAgent, sendAsVisitor } from './messages.ts'
import { firstUnseen, tellUnseenMessages } from './unseen-messages.ts'

const cores = testCores({ count: 2, started: false })
let visitor: TestVisitor

const form = [{ name: 'mail', label: 'Mail', type: 'email' as const, required: true, maxLength: 254 }]

async function newVisitor(unseenAfterMinutes?: number) {
  const capabilities = { offlineForm: true }
  visitor = await cores.newVisitor(await cores.newSite({ unseenAfterMinutes, capabilities, forms: { offline: form } }))
}
beforeEach(() => newVisitor())

async function answer(core = cores.core) {
  const { conversationId } = visitor
  const sent = { conversationId, clientOperationId: randomUUID(), body: 'Yes', agent: { displayName: 'Ada' } }
  const { event } = await sendAsAgent(core, sent)
  await inboxOf(core).noted()
  return event
}
const write = () =>
  sendAsVisitor(cores.other, {
    credentials: visitor.credentials,
    clientOperationId: randomUUID(),
    body: 'Hello',
    contentType: 'text',
  })
const see = (upToSequence: number) =>
  recordReceipt(cores.core, { credentials: visitor.credentials, upToSequence, state: 'read' })

/** Lets time pass, lets all cores look, and returns the messages that were told about so far. */
async function told(minutes = 0) {
  cores.advance(minutes * 60)
  await Promise.all([...cores.cores, ...cores.cores].map((core) => tellUnseenMessages(core)))
  const { conversationId } = visitor
  const found = await cores.core.database.collections.events.find({ conversationId, type: 'message.unseen' }).toArray()
  return found.map(({ data }) => data)
}

describe('an answer that nobody has seen', () => {
  it('is told once by all cores together, ten minutes after it', async () => {
    const { message, occurredAt } = await answer()
    expect(await told(2)).toEqual([])
    await answer(cores.other)
    expect(await told(7)).toEqual([])
    const data = { messageId: message!.messageId, sentAt: occurredAt.toISOString() }
    expect(await told(1.1)).toEqual([data])
    expect(await told(30)).toEqual([data])
  })

  it('is told again only after the visitor was there', async () => {
    await newVisitor(1)
    await answer()
    expect(await told(1.1)).toHaveLength(1)
    const second = await answer()
    expect(await told(3)).toHaveLength(1)
    await see(second.sequence)
    const third = await answer()
    const tolds = await told(3)
    expect(tolds.map((data) => data?.messageId)).toEqual([expect.any(String), third.message!.messageId])
  })

  it('is told once, however many answers follow', async () => {
    await newVisitor(1)
    await answer()
    expect(await told(1.1)).toHaveLength(1)
    await Promise.all(Array.from({ length: 201 }, () => answer()))
    expect(await told(3)).toHaveLength(1)
  })

  it.each<[string, () => Promise<unknown>]>([
    ['it was seen', async () => see((await answer()).sequence)],
    ['the visitor wrote after it', async () => answer().then(write)],
    [
      'it was withdrawn',
      async () => {
        const { conversationId, sequence } = await answer()
        const redactor = { workspaceId: undefined, subject: 'svc', anyAuthor: true }
        await redactMessage(cores.core, { conversationId, sequence }, redactor)
      },
    ],
  ])('is never told if %s', async (_, act) => {
    await act()
    expect(await told(2)).toEqual([])
    expect(await told(30)).toEqual([])
  })

  it('is never told where the website has set 0 or has no receipts, and after a minute where it has set 1', async () => {
    await newVisitor(0)
    await answer()
    expect(await told(100)).toEqual([])
    await newVisitor(1)
    await answer()
    expect(await told(1.1)).toHaveLength(1)
  })

  it('is told when it has ended, if it still grows after the wait', async () => {
    await newVisitor(1)
    const part = (offset: number, done = false) => append(cores.core, visitor, 'a', offset, 'Yes', { done })
    const { messageId } = await part(0)
    await inboxOf(cores.core).noted()
    for (let offset = 3; offset < 30; offset += 3) {
      expect(await told(0.4)).toEqual([])
      await part(offset)
    }
    await part(30, true)
    expect(await told(0.1)).toMatchObject([{ messageId }])
  })

  it('is told once, no matter after which write the core that looks dies', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      await newVisitor()
      await answer()
      cores.advance(11 * 60)
      const died = await hasFailed(tellUnseenMessages(mortal))
      expect(await told(6)).toHaveLength(1)
      return died
    })
  })

  it('is in the feed with the address that the visitor left, which readers of leads see', async () => {
    const { credentials, workspaceId, conversationId } = visitor
    const fields = { mail: 'mia@example.org' }
    await submitForm(cores.core, { credentials, form: 'offline', fields, idempotencyKey: 'k' })
    const event = await answer()
    await told(11)
    await flushFeed(cores.core)
    const query = { workspaceId, cursor: '', types: ['message.unseen'] }
    const { events } = await feedReaderOf(cores.other).read(query, { waitMs: 0, signal: new AbortController().signal })
    expect(events).toMatchObject([
      { entry: { conversationId }, event: { data: { messageId: event.message!.messageId } }, lead: { fields } },
    ])
  })
})

describe('the first unseen message', () => {
  it('is the oldest answer that the visitor has not seen, and none once one was told in this absence', () => {
    const step = fc.oneof(
      fc.constantFrom('agent', 'visitor', 'form', 'unseen', 'other').map((kind) => ({ kind, of: 0 })),
      fc.record({ kind: fc.constantFrom('read', 'delivered', 'redact'), of: fc.nat() }),
    )
    forAll([fc.array(step, { maxLength: 30 })], runs(300, 1), (steps) => {
      const events: LogEvent[] = []
      let unseen: LogEvent[] = []
      let isTold = false
      for (const [index, { kind, of }] of steps.entries()) {
        const answers = events.filter(({ type }) => type === 'message.received')
        const target = answers[of % Math.max(1, answers.length)]?.sequence
        const at = { conversationId: 'cnv_1', sequence: index + 1, occurredAt: new Date(index) }
        const event = { ...at, ...eventOf(kind, target) } as LogEvent
        events.push(event)
        if (kind === 'agent') unseen.push(event)
        if (kind === 'read' && target) unseen = unseen.filter(({ sequence }) => sequence > target)
        if (kind === 'unseen') isTold = true
        if (['visitor', 'form', 'read'].includes(kind)) isTold = false
        if (kind === 'redact') unseen = unseen.filter(({ sequence }) => sequence !== target)
        if (['visitor', 'form'].includes(kind)) unseen = []
      }
      expect(firstUnseen(events.toReversed())).toBe(isTold ? undefined : unseen[0])
    })
  })
})

function eventOf(kind: string, messageSequence: number | undefined): Partial<LogEvent> {
  const author = { kind: 'agent' as const, displayName: 'Ada' }
  const message = { messageId: 'msg_1', author, body: 'Yes', contentType: 'text' as const, state: 'sent' as const }
  if (kind === 'agent') return { type: 'message.received', message }
  if (kind === 'visitor') return { type: 'message.accepted', message: { ...message, author: { kind: 'visitor' } } }
  if (kind === 'form') return { type: 'form.submitted' }
  if (kind === 'unseen') return { type: 'message.unseen' }
  if (kind === 'redact') return { type: 'message.redacted', messageSequence }
  if (kind === 'other') return { type: 'message.state.changed', data: { clientOperationId: 'op', state: 'read' } }
  return { type: 'message.state.changed', messageSequence: messageSequence ?? 0, data: { state: kind as 'read' } }
}
