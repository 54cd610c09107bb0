import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { testCores } from '../test/cores.ts'
import { inTurn } from '../test/scheduled-database.ts'
import { listConversations, recordActivity } from './inbox.ts'
import { inboxWatchOf } from './inbox-watch.ts'

const cores = testCores()

/** Generates the number of scheduler turns by which a step is delayed. */
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

it('an inbox list shows the last message of each conversation if a client reads it after `ready` and applies each change', async () => {
  await forAllAsync(
    [fc.scheduler(), fc.boolean(), turns, turns],
    runs(100),
    async (scheduler, isWatchedBefore, late, later) => {
      const { conversationId } = await cores.newSession()
      const { workspaceId } = cores
      const log = logOf(cores.core)
      const operators = cores.scheduledCore(scheduler)
      if (isWatchedBefore)
        inboxWatchOf(operators).add({ workspaceId, ready() {}, changed() {}, grew() {}, noted() {}, removed() {} })
      const documents: Promise<void>[] = []
      let seen = 0
      const see = (sequence = 0) => {
        seen = Math.max(seen, sequence)
      }

      /**
       * Writes messages as another core would. The event, its wake-up and the conversation's
       * document are written one after another, each after a random delay.
       */
      async function write() {
        for (const body of ['one', 'two']) {
          const { event } = await inTurn(scheduler, 'append', () => log.append(draft(conversationId, body)))
          const { sequence, occurredAt } = event
          await inTurn(scheduler, 'hint', async () => {
            operators.bus.emit('advanced', conversationId, { sequence, closed: false })
          })
          const queue = { sequence, open: true as const }
          const activity = { conversationId, lastMessageAt: occurredAt, lastSequence: sequence, queue }
          documents.push(follow(activity))
        }
      }
      async function follow(activity: Parameters<typeof recordActivity>[1][number]) {
        await yieldTurns(late)
        await inTurn(scheduler, 'document', () => recordActivity(cores.core, [activity]))
      }
      async function yieldTurns(count: number) {
        for (let turn = 0; turn < count; turn += 1) await scheduler.schedule(Promise.resolve(), 'turn')
      }
      async function watch() {
        await yieldTurns(later)
        inboxWatchOf(operators).add({
          workspaceId,
          ready() {},
          noted() {},
          grew() {},
          removed() {},
          changed: ({ conversation }) =>
            conversation.conversationId === conversationId && see(conversation.lastSequence),
        })
        const { conversations } = await listConversations(operators, { workspaceId })
        see(conversations.find((each) => each.conversationId === conversationId)?.lastSequence)
      }

      await scheduler.waitFor(Promise.all([write().then(() => Promise.all(documents)), watch()]))
      // In production, a job calls this every few seconds.
      await scheduler.waitFor(inboxWatchOf(operators).check())
      await scheduler.waitIdle()
      expect(seen).toBe(2)
    },
  )
})
