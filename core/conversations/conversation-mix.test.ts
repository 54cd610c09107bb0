import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { answer, send, type TestVisitor, testCores } from '../test/cores.ts'
import { assignAgent, closeConversation, unassignAgent } from './assignments.ts'
import { drainConversations } from './jobs.ts'
import { updateMessageStates } from './message-states.ts'
import { listMessagesForVisitor } from './messages.ts'
import { setTypingOfAgent, setTypingOfVisitor } from './typing.ts'

const cores = testCores({ count: 2 })

const ada = { displayName: 'Ada' }
const kinds = [
  'visitor message',
  'agent message',
  'visitor types',
  'agent types',
  'agent stops',
  'sent',
  'read',
  'assign',
  'unassign',
  'close',
  'reconnect',
] as const
const step = fc.record({ kind: fc.constantFrom(...kinds), core: fc.nat(1), wait: fc.boolean() })

/**
 * Reads the stream like a browser. `reconnect` opens a stream on the other core. The stream starts
 * after the last received sequence.
 */
async function createReader(visitor: TestVisitor) {
  const streams: Awaited<ReturnType<typeof cores.openStream>>[] = []
  const at = () => streams.at(-1)?.position ?? 0
  const connect = async () =>
    void streams.push(await cores.openStream(visitor, cores.cores[streams.length % 2], { afterSequence: at() }))
  const close = () => streams.at(-1)!.close()
  await connect()
  let connecting = Promise.resolve()
  return {
    seen: () =>
      streams.flatMap(({ sequences, types, json }) =>
        sequences.map((sequence, index) => ({ sequence, type: types[index]!, data: JSON.parse(json[index]!).data })),
      ),
    at,
    /** Closes the current connection before it opens the next one, as a browser does. */
    reconnect() {
      connecting = connecting.then(() => {
        close()
        return connect()
      })
      return connecting
    },
    close,
  }
}

it('readers and history agree with the event log under random concurrent calls on two cores', async () => {
  await forAllAsync([fc.array(step, { minLength: 5, maxLength: 40 })], runs(50), async (plan) => {
    const visitor = await cores.newVisitor()
    const { conversationId, credentials } = visitor
    const readers = await Promise.all([createReader(visitor), createReader(visitor)])
    const [first, second] = readers
    if (plan.length % 2 === 0) await second!.reconnect()

    const under = plan.map(async ({ kind, core: which }, index) => {
      const core = cores.cores[which]!
      const typed = (state: 'started' | 'stopped') =>
        setTypingOfAgent(core, { conversationId, state, agent: ada }, undefined)
      const states = (state: string) =>
        updateMessageStates(core, { conversationId, upToSequence: 1000, state }, undefined).then(() => {})
      if (kind === 'visitor message') await send(core, visitor, `v${index}`)
      else if (kind === 'agent message') await answer(core, visitor, `a${index}`)
      else if (kind === 'visitor types') await setTypingOfVisitor(core, credentials, 'started')
      else if (kind === 'agent types') await typed('started')
      else if (kind === 'agent stops') await typed('stopped')
      else if (kind === 'sent' || kind === 'read') await states(kind)
      else if (kind === 'assign') await assignAgent(core, conversationId, { displayName: `A${index}` }, undefined)
      else if (kind === 'unassign') await unassignAgent(core, conversationId, undefined)
      else if (kind === 'close') await closeConversation(core, conversationId, undefined)
      else await first!.reconnect()
    })
    for (const [index, { wait }] of plan.entries()) if (wait) await under[index]
    await Promise.all(under)
    await Promise.all(cores.cores.map(drainConversations))

    const log = await cores.log(conversationId)
    const end = log.at(-1)?.sequence ?? 0
    expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, place) => place + 1))
    const operations = log.flatMap(({ operationKey = [] }) => operationKey)
    expect(new Set(operations).size).toBe(operations.length)

    let open = true
    for (const { type } of log) {
      if (type === 'conversation.closed' || type === 'conversation.reopened') {
        expect(open).toBe(type === 'conversation.closed')
        open = !open
      } else if (type === 'message.accepted' || type === 'message.received') expect(open).toBe(true)
    }

    const lasting = log.filter(({ transient }) => !transient)
    for (const reader of readers) {
      await until('the whole log', () => reader.at() >= end)
      const seen = reader.seen()
      const sequences = seen.map(({ sequence }) => sequence)
      expect(sequences).toEqual([...new Set(sequences)].sort((one, other) => one - other))
      expect(seen.filter(({ type }) => !type.startsWith('typing')).map(({ sequence }) => sequence)).toEqual(
        lasting.map(({ sequence }) => sequence),
      )
      expect(seen.some(({ data }) => data.author?.kind === 'visitor')).toBe(false)
      reader.close()
    }

    const stateOf = new Map<string, string>()
    for (const { type, data } of first!.seen()) {
      if (data.message) stateOf.set(data.message.messageId, data.message.state)
      if (type === 'message.state.changed' && rank(data.state) > rank(stateOf.get(data.messageId)!))
        stateOf.set(data.messageId, data.state)
    }
    const { messages } = await listMessagesForVisitor(cores.other, credentials, { limit: 100 })
    expect(messages.map(({ message, currentState }) => [message!.messageId, currentState ?? message!.state])).toEqual([
      ...stateOf,
    ])
  })
})

const rank = (state: string) => ['queued', 'sent', 'delivered', 'read'].indexOf(state)
