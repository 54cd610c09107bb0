import { describe, expect, it } from 'vitest'
import { requestNavigation } from '../commands/commands.ts'
import { answer, send, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { assignAgent, closeConversation, reopenConversation } from './assignments.ts'
import { findConversation, listConversationEvents } from './conversation-access.ts'
import { setTypingOfVisitor } from './typing.ts'

const cores = testCores({ count: 2, started: false })
const caller = (workspaceId?: string) => ({ workspaceId, scopes: operatorScopes })

describe('the events of a conversation', () => {
  it('include assignments, closings and requests in their order, but no messages, state changes or typing', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, sessionId, credentials } = visitor
    await send(cores.core, visitor, 'hello')
    await setTypingOfVisitor(cores.core, credentials, 'started')
    await assignAgent(cores.other, conversationId, { displayName: 'Ada' }, undefined)
    await answer(cores.other, visitor, 'hi')
    await requestNavigation(cores.core, { sessionId, url: `${site}/prices`, label: 'Prices' }, { subject: 'desk' })
    await closeConversation(cores.core, conversationId, undefined)
    await reopenConversation(cores.other, conversationId, undefined)
    const all = await listConversationEvents(
      cores.core,
      conversationId,
      { afterSequence: 0 },
      caller(visitor.workspaceId),
    )
    const types = ['agent.assigned', 'navigation.requested', 'conversation.closed', 'conversation.reopened']
    expect(all.events.map(({ type }) => type)).toEqual(types)
    expect(all.events[0]!.data).toMatchObject({ agent: { displayName: 'Ada' } })
    expect(all.hasMore).toBe(false)

    const [, second] = all.events
    const range = { afterSequence: second!.sequence, limit: 1 }
    const page = await listConversationEvents(cores.other, conversationId, range, caller())
    expect(page).toMatchObject({ events: [{ type: 'conversation.closed' }], hasMore: true })
    const before = { afterSequence: 0, beforeSequence: second!.sequence }
    const earlier = await listConversationEvents(cores.other, conversationId, before, caller())
    expect(earlier.events.map(({ type }) => type)).toEqual(['agent.assigned'])
  })

  it('include one event per assignment if operators assign concurrently, and the last one has the stored agent', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await send(cores.core, visitor, 'hello')
    const names = ['Ada', 'Jonas', 'Mia', 'Noor']
    await Promise.all(
      names.map((displayName, index) =>
        assignAgent(cores.cores[index % 2]!, conversationId, { displayName }, undefined),
      ),
    )
    const { events } = await listConversationEvents(cores.core, conversationId, { afterSequence: 0 }, caller())
    const assigned = events.map(({ data }) => data?.agent?.displayName)
    expect(assigned.toSorted()).toEqual(names.toSorted())
    const conversation = await findConversation(cores.other, conversationId, undefined)
    expect(conversation.assignment?.agent?.displayName).toBe(assigned.at(-1))
  })

  it('are refused with an invalid limit', async () => {
    const { conversationId } = await cores.newVisitor()
    const list = (limit: number) =>
      listConversationEvents(cores.core, conversationId, { afterSequence: 0, limit }, caller())
    for (const limit of [0, 101]) await expect(list(limit)).rejects.toMatchObject({ code: 'ValidationFailed' })
  })
})
