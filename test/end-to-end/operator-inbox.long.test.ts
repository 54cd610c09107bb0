import { Code } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import type { Operator } from '../support/operator.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { watchInbox } from './watch-inbox.ts'

const database = testDatabase()
let stack: Stack
let onA: Operator
let onB: Operator

beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { TYPING_SECONDS: '1' } })
  onA = stack.operator()
  onB = stack.operator(1)
})

describe('an operator’s inbox stream', () => {
  it('ends when the process of its core is stopped, and the process exits with code 0', async () => {
    const inbox = watchInbox(onB)
    await inbox.ready()
    const stopped = stack.cores[1]!.process()
    await stopped.stop()
    expect(await stopped.exited).toMatchObject({ code: 0 })
    expect(['ended', Code.Unavailable, Code.Canceled, Code.Aborted]).toContain(await inbox.ended)
    await stack.cores[1]!.start()
  })
})

describe('an agent’s typing', () => {
  it('ends if the core that the agent called is killed: another core sends one stop event', async () => {
    const visitor = await stack.newVisitor()
    const { conversationId } = visitor.session
    const live = await visitor.openStream({ via: stack.gateways[1]!.url })
    await onA.messaging.setTyping({ conversationId, state: TypingState.STARTED, agent: { displayName: 'Ada' } })
    await stack.cores[0]!.kill()
    await until('the end', () => live.events.some(({ type }) => type === 'typing.stopped'))
    await stack.cores[0]!.start()
    await onB.messaging.sendAgentMessage({
      conversationId,
      clientOperationId: 'a',
      body: 'Hi',
      agent: { displayName: 'Ada' },
    })
    await until('the message', () => live.events.some(({ type }) => type === 'message.received'))
    expect(live.events.map(({ type }) => type)).toEqual(['typing.started', 'typing.stopped', 'message.received'])
    live.close()
  })
})
