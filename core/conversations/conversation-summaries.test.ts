import { createClient } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { captureLead } from '../deliveries/lead-capture.ts'
import { answer, send, testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { closeConversation } from './assignments.ts'
import { updateMessageStates } from './message-states.ts'

const cores = testCores({ started: false })
let headers: (workspaceId?: string) => Promise<{ headers: { authorization: string } }>
let messaging: ReturnType<typeof createClient<typeof MessagingService>>

beforeAll(async () => {
  const transport = transportTo(cores.core)
  messaging = createClient(MessagingService, transport)
  headers = async (workspaceId) => {
    const scopes = ['messages:read', 'workspaces:read']
    const token = await accessOf(cores.core).issue({ subject: 'test', scopes, ...(workspaceId && { workspaceId }) })
    return { headers: { authorization: `Bearer ${token}` } }
  }
})

describe("the operators' list of conversations", () => {
  it('includes the visitor and the last message, whether the visitor or an agent wrote it', async () => {
    const visitor = await cores.newVisitor()
    const { workspaceId, conversationId } = visitor
    await send(cores.core, visitor, 'hello')
    const options = await headers(workspaceId)
    const first = await messaging.listConversations({}, options)
    expect(first.conversations[0]).toMatchObject({
      conversationId,
      visitor: { identityState: 'anonymous' },
      lastMessage: { body: 'hello', author: { kind: 'visitor' } },
    })
    await answer(cores.core, visitor, 'good-day')
    await closeConversation(cores.core, conversationId, undefined)
    const { conversation } = await messaging.getConversation({ conversationId }, options)
    expect(conversation).toMatchObject({
      visitor: { identityState: 'anonymous' },
      lastMessage: { body: 'good-day', author: { kind: 'agent' } },
    })
  })

  it('shows no last message for a conversation without messages', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, workspaceId } = visitor
    const { conversation } = await messaging.getConversation({ conversationId }, await headers(workspaceId))
    expect(conversation).toMatchObject({ conversationId, lastSequence: 0 })
    expect(conversation?.lastMessage).toBeUndefined()
  })

  it('shows the current delivery state of the last message', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, workspaceId } = visitor
    const { event } = await send(cores.core, visitor, 'read-me')
    await updateMessageStates(cores.core, { conversationId, upToSequence: event.sequence, state: 'read' }, undefined)
    const { conversation } = await messaging.getConversation({ conversationId }, await headers(workspaceId))
    expect(conversation?.lastMessage?.state).toBe('read')
  })
})

describe('the contact of a conversation', () => {
  it('is the latest lead with a name or an e-mail address, and is hidden from callers who may not read leads', async () => {
    const visitor = await cores.newVisitor()
    const { workspaceId, conversationId } = visitor
    await send(cores.core, visitor, 'hello')
    const capture = (fields: Record<string, string>) =>
      captureLead(cores.core, { workspaceId, source: 'pre-chat-form', fields, conversationId }, undefined)
    await capture({ name: 'Maria', email: 'maria@example.org' })
    cores.advance(1)
    const leadId = await capture({ Name: ' Maria Huber ', contact: 'maria.huber@example.org' })
    cores.advance(1)
    await capture({ topic: 'Shipping' })
    const contactFor = async (scopes: string[]) => {
      const token = await accessOf(cores.core).issue({ subject: 'test', scopes, workspaceId })
      const options = { headers: { authorization: `Bearer ${token}` } }
      const { conversations } = await messaging.listConversations({}, options)
      const { conversation } = await messaging.getConversation({ conversationId }, options)
      const listed = conversations.find((each) => each.conversationId === conversationId)
      expect(listed?.contact).toEqual(conversation?.contact)
      return conversation?.contact
    }
    const contact = { leadId, name: 'Maria Huber', email: 'maria.huber@example.org' }
    expect(await contactFor(['messages:read', 'leads:read'])).toMatchObject(contact)
    expect(await contactFor(['messages:read'])).toBeUndefined()
  })

  it('is found behind 500 newer leads of another conversation of the page', async () => {
    const site = await cores.newSite()
    const { workspaceId } = site
    const [older, newer] = [await cores.newVisitor(site), await cores.newVisitor(site)]
    for (const visitor of [older, newer]) await send(cores.core, visitor, 'hello')
    const lead = { workspaceId, source: 'offline-form', fields: { name: 'Maria' } }
    await captureLead(cores.core, { ...lead, conversationId: older.conversationId }, undefined)
    const { leads } = cores.core.database.collections
    const [captured] = await leads.find({ workspaceId }).toArray()
    const createdAt = new Date(captured!.createdAt.getTime() + 1)
    const more = { ...captured!, conversationId: newer.conversationId, createdAt, fields: { topic: 'Shipping' } }
    await leads.insertMany(Array.from({ length: 500 }, (_, index) => ({ ...more, _id: `lead_${index}` })))
    const token = await accessOf(cores.core).issue({
      subject: 'test',
      scopes: ['messages:read', 'leads:read'],
      workspaceId,
    })
    const options = { headers: { authorization: `Bearer ${token}` } }
    const { conversations } = await messaging.listConversations({}, options)
    expect(conversations.map(({ contact }) => contact?.name)).toEqual([undefined, 'Maria'])
  })
})
