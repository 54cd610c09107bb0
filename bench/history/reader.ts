// Fills an empty store and measures one request at a time through the gateway.
import { readFile } from 'node:fs/promises'
import { openDatabase } from '../../core/database/database.ts'
import { handleCommands } from '../commands.ts'
import { type HttpConnection, openConnection } from '../http-connection.ts'
import { quantile } from '../table.ts'
import { type BenchVisitor, createVisitors, readHistory, sendMessage } from '../visitors.ts'
import { type Filling, fillStore } from './store.ts'

export type ReaderCommand = ({ do: 'fill' } & Filling) | { do: 'measure'; action: Action; count: number }

export type Action = 'page' | 'send' | 'largest page' | 'largest send'

export interface Measured {
  p50: number
  p99: number
}

/** Number of visitors. With 20 messages each, their messages fit in the smallest store. */
const visitorCount = 300
const [demoFile = '', port = ''] = process.argv.slice(2)
const { mongodbUri } = JSON.parse(await readFile(demoFile, 'utf8'))
const visitors = await createVisitors(Number(port), visitorCount)
let largestLength = 0
let turn = 0

async function fill(filling: Filling): Promise<void> {
  largestLength = filling.largest
  const database = await openDatabase({ uri: mongodbUri, name: 'service', timeoutMs: 60_000 })
  await fillStore(database, visitors, filling)
  await database.close()
}

/**
 * Requests to measure. `page` and `send` use a different visitor for each request. `largest page`
 * and `largest send` use the first visitor, who has the largest conversation. `largest page` reads
 * a page at a different position each time.
 */
const actions: Record<Action, (connection: HttpConnection) => Promise<unknown>> = {
  page: (on) => readHistory(on, nextVisitor(), 'limit=20'),
  send: (on) => sendMessage(on, nextVisitor()),
  'largest page': (on) =>
    readHistory(on, firstVisitor(), `limit=20&beforeSequence=${21 + ((turn++ * 7_919) % largestLength)}`),
  'largest send': (on) => sendMessage(on, firstVisitor()),
}

function nextVisitor(): BenchVisitor {
  turn = (turn + 1) % (visitorCount - 1)
  return visitors[turn + 1] as BenchVisitor
}

const firstVisitor = () => visitors[0] as BenchVisitor

handleCommands(async (command: ReaderCommand): Promise<Measured | undefined> => {
  if (command.do === 'fill') return void (await fill(command))
  // Opens a new connection, because the gateway closes idle connections while the store is filled.
  const connection = await openConnection(Number(port))
  const waits: number[] = []
  for (let index = 0; index < command.count; index += 1) {
    const at = performance.now()
    await actions[command.action](connection)
    waits.push(performance.now() - at)
  }
  connection.close()
  return { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) }
})
