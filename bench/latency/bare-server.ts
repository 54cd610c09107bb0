// Server process that does the least possible work for a message: one journaled insert, then one
// write to an open socket. Its latency is the lower bound.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { attachEngine } from '../../dev/engine/engine.ts'
import { clock, handleCommands } from '../commands.ts'

const [dataDir = '', readerPort = ''] = process.argv.slice(2)
const engine = await attachEngine({ dataDir, logger: { info() {}, warn: console.warn, error: console.error } })
const client = await new MongoClient(engine.uri).connect()
const messages = client.db('bare').collection('messages', { writeConcern: { w: 1, journal: true } })
const reader = connect({ port: Number(readerPort), host: '127.0.0.1', noDelay: true })
await once(reader, 'connect')
const body = 'We do, and it will be there by Friday.'

export type BareCommand = { do: 'write'; count: number; pauseMs: number; besideEachSecond: number }

handleCommands(async ({ count, pauseMs, besideEachSecond }: BareCommand) => {
  const beside = besideEachSecond === 0 ? undefined : setInterval(insertBeside, 1000 / besideEachSecond)
  for (let written = 0; written < count; written += 1) {
    await delay(pauseMs)
    const at = clock()
    await messages.insertOne({ body, at })
    reader.write(`${at}\n`)
  }
  clearInterval(beside)
})

function insertBeside() {
  messages.insertOne({ body, at: 0 }).catch(() => {})
}
