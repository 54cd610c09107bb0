import { MongoClient } from 'mongodb'
import { afterAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { createEventStore } from '../log/event-store.ts'
import { operationKeys } from '../log-event.ts'
import { collectionsOf } from './collections.ts'

const { uri, name } = testDatabase({ isNew: true })
const client = new MongoClient(uri, { monitorCommands: true })
const events = createEventStore(collectionsOf(client.db(name)))
afterAll(() => client.close())

const conversationId = 'cnv_1'
const range = { conversationId, after: 0 }

it.each<[string, () => Promise<unknown>]>([
  ['the end of a log', () => events.ends([conversationId], { committed: true })],
  ['a replay', () => events.readAfter(range, 10)],
  ['the events that live streams missed', () => events.readManyAfter([range], 10, { transient: true })],
  ['the number of events in a replay window', () => events.countAfter(range, 10)],
  [
    'the oldest event of a replay window',
    () => events.oldestSequence(conversationId, { since: new Date(0), newest: 10 }),
  ],
  ['the oldest stored event', () => events.starts([conversationId])],
  ['a page of history', () => events.historyPage({ conversationId, limit: 10 })],
  ['the first message of a conversation', () => events.firstMessage(conversationId)],
  [
    'the result of a repeated operation',
    () => events.findOperations([{ conversationId, operationKey: operationKeys.agentMessage('x') }]),
  ],
  ['the last messages of an inbox', () => events.at([{ conversationId, sequence: 1 }])],
])('reads %s with majority read concern', async (_, read) => {
  const concerns: unknown[] = []
  const listen = ({ commandName, command }: { commandName: string; command: { readConcern?: unknown } }) => {
    if (['find', 'aggregate', 'count', 'distinct'].includes(commandName)) concerns.push(command.readConcern)
  }
  client.on('commandStarted', listen)
  await read()
  client.off('commandStarted', listen)
  expect(concerns.length).toBeGreaterThan(0)
  expect(new Set(concerns.map((concern) => JSON.stringify(concern)))).toEqual(new Set(['{"level":"majority"}']))
})
