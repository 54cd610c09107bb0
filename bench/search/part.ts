import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openDatabase } from '../../core/database/database.ts'
import { operatorOf } from '../../test/support/operator.ts'
import type { Part } from '../part.ts'
import { skipSearchCatchUp, writeSearchEntries } from '../search-entries.ts'
import { startCore } from '../service.ts'
import { cellOf, quantile } from '../table.ts'

const perConversation = 20
const conversationsAtOnce = 50
const wordsPerMessage = 12
const vocabulary = 50_000
const queriesPerRound = 100

/** Returns the word with this rank in the order of frequency. */
const wordAt = (rank: number) => `${'bdfgklmnprstvz'[rank % 14]}${'aeiou'[rank % 5]}${rank.toString(36)}`
/** Returns a random rank, with the frequencies of words in a natural language (Zipf's law). */
const someRank = () => Math.min(vocabulary, Math.floor(Math.exp(Math.random() * Math.log(vocabulary))))
const someWord = () => wordAt(someRank())

/** Inserts conversations with their search entries, in the core's format. */
async function writeMessages(mongodbUri: string, count: number) {
  const database = await openDatabase({ uri: mongodbUri, name: 'service', timeoutMs: 60_000 })
  const { conversations, events } = database.collections
  const workspaceId = 'ws_demo'
  const fast = { ordered: false, writeConcern: { w: 1 } } as const
  const began = Date.now()
  for (let start = 0; start < count / perConversation; start += conversationsAtOnce) {
    const ids = Array.from({ length: conversationsAtOnce }, (_, index) => `cnv_search${start + index}`)
    const at = new Date(began - (count / perConversation - start) * 1000)
    await conversations.insertMany(
      ids.map((_id) => ({
        _id,
        workspaceId,
        connectionId: 'con_demo',
        epoch: 'bench',
        createdAt: at,
        lastMessageAt: at,
        lastSequence: perConversation,
      })),
      fast,
    )
    const written = ids.flatMap((conversationId) =>
      Array.from({ length: perConversation }, (_, place) => ({
        conversationId,
        sequence: place + 1,
        type: 'message.received' as const,
        occurredAt: new Date(at.getTime() + place),
        message: {
          messageId: `msg_${conversationId}x${place}`,
          author: { kind: 'agent' as const, displayName: 'Ada' },
          body: Array.from({ length: wordsPerMessage }, someWord).join(' '),
          contentType: 'text' as const,
          state: 'queued' as const,
        },
      })),
    )
    await events.insertMany(written, fast)
    await writeSearchEntries(database, workspaceId, written)
  }
  await skipSearchCatchUp(database)
  await database.close()
}

const middle = () => wordAt(200 + Math.floor(Math.random() * 2000))
const queries: [name: string, query: () => string][] = [
  ['a rare word', () => `${wordAt(30_000 + Math.floor(Math.random() * 20_000))} `],
  ['a word of medium frequency', () => `${middle()} `],
  ['a frequent word', () => `${wordAt(1 + Math.floor(Math.random() * 10))} `],
  ['the first two letters of a word', () => someWord().slice(0, 2)],
  ['two words', () => `${someWord()} ${someWord()}`],
  [
    'two frequent words',
    () => `${wordAt(1 + Math.floor(Math.random() * 10))} ${wordAt(20 + Math.floor(Math.random() * 30))}`,
  ],
  ['a word that does not occur', () => `nothing${Math.random().toString(36).slice(2)}`],
]

/** Measures the latency of searches in a workspace with many messages. */
export const searchPart: Part = async ({ rounds, quick, profile, log }) => {
  const messages = quick ? 20_000 : 1_000_000
  const core = await startCore({ profile })
  const { serviceToken, workspaceId } = JSON.parse(await readFile(join(core.dataDir, 'demo.json'), 'utf8'))
  const began = performance.now()
  await writeMessages(core.mongodbUri, messages)
  log(`${messages.toLocaleString('en')} messages written in ${((performance.now() - began) / 1000).toFixed(0)} s`)
  const { messaging } = operatorOf(core.url, serviceToken)

  async function measure(next: () => string) {
    const times: number[] = []
    let found = 0
    for (let count = 0; count < queriesPerRound; count += 1) {
      const query = next()
      const at = performance.now()
      const { results } = await messaging.searchConversations({ workspaceId, query })
      times.push(performance.now() - at)
      found += results.length
    }
    return { p50: quantile(times, 0.5), p95: quantile(times, 0.95), found: found / queriesPerRound }
  }

  const rows = []
  for (const [name, next] of queries) {
    const measured = []
    for (let round = 0; round < rounds; round += 1) measured.push(await measure(next))
    log(`${name}: p95 ${measured.map(({ p95 }) => p95.toFixed(0)).join(', ')} ms`)
    const figures = [
      cellOf(measured, ({ p50 }) => p50, 'ms', 1),
      cellOf(measured, ({ p95 }) => p95, 'ms', 1),
      cellOf(measured, ({ found }) => found, '', 1),
    ]
    rows.push({ name, cells: figures })
  }
  await core.running.stop()
  return [
    {
      title: `Searches of a workspace with ${messages.toLocaleString('en')} messages`,
      columns: ['', 'median', '95th percentile', 'results on the first page'],
      rows,
      notes: [`Each figure is of ${queriesPerRound} searches, one at a time. A message has ${wordsPerMessage} words.`],
    },
  ]
}
