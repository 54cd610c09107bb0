import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { newId } from '../ids.ts'
import { operationKeys } from '../log/operation-keys.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import { inTurn } from '../test-interleaving.ts'

const database = testDatabase()
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database)
})
afterAll(() => cores.stop())

/** Turns of other tasks before a step. */
const turns = fc.nat(30)

const draft = (conversationId: string, body: string) => ({
  conversationId,
  type: 'message.received' as const,
  operationKey: operationKeys.agentMessage(body),
  inputHash: body,
  message: {
    messageId: newId('msg'),
    author: { kind: 'agent' as const },
    body,
    contentType: 'text' as const,
    state: 'sent' as const,
  },
})

it('a list read after `ready`, with the changes since, has the last message of each conversation', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.boolean(), turns, turns, async (scheduler, isWatchedBefore, late, later) => {
      const { conversationId } = await cores.newSession()
      const { workspaceId } = cores
      const { stores, log } = cores.core
      const operators = cores.interleavedCore(scheduler)
      if (isWatchedBefore) operators.inboxWatch.add({ workspaceId, ready() {}, changed() {} })
      const documents: Promise<void>[] = []
      let seen = 0
      const see = (sequence = 0) => {
        seen = Math.max(seen, sequence)
      }

      /** Another core: the event, the hint, and the conversation's document, each delayed. */
      async function write() {
        for (const body of ['one', 'two']) {
          const { event } = await inTurn(scheduler, 'append', () => log.append(draft(conversationId, body)))
          const { sequence, occurredAt } = event
          await inTurn(scheduler, 'hint', async () => {
            operators.bus.emit('advanced', conversationId, { sequence, closed: false })
          })
          const activity = { conversationId, lastMessageAt: occurredAt, lastSequence: sequence }
          documents.push(follow(activity))
        }
      }
      async function follow(activity: Parameters<typeof stores.conversations.recordActivity>[0][number]) {
        await yieldTurns(late)
        await inTurn(scheduler, 'document', () => stores.conversations.recordActivity([activity]))
      }
      async function yieldTurns(count: number) {
        for (let turn = 0; turn < count; turn += 1) await scheduler.schedule(Promise.resolve(), 'turn')
      }
      async function watch() {
        await yieldTurns(later)
        operators.inboxWatch.add({
          workspaceId,
          ready() {},
          changed: ({ conversation }) =>
            conversation.conversationId === conversationId && see(conversation.lastSequence),
        })
        const { conversations } = await operators.inbox.list({ workspaceId })
        see(conversations.find((each) => each.conversationId === conversationId)?.lastSequence)
      }

      await scheduler.waitFor(Promise.all([write().then(() => Promise.all(documents)), watch()]))
      // Runs every few seconds in a core.
      await scheduler.waitFor(operators.inboxWatch.check())
      await scheduler.waitIdle()
      expect(seen).toBe(2)
    }),
    { numRuns: 60 },
  )
})
