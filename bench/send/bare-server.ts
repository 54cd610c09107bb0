// Server process for comparison: Fastify alone with one journaled insert per request. It has its
// own database engine, of the same kind as the service's.
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { MongoClient } from 'mongodb'
import { attachEngine } from '../../dev/engine/engine.ts'
import { handleCommands } from '../commands.ts'

const [dataDir = ''] = process.argv.slice(2)
const engine = await attachEngine({ dataDir, logger: { info() {}, warn: console.warn, error: console.error } })
const client = await new MongoClient(engine.uri).connect()
const messages = client.db('bare').collection('messages', { writeConcern: { w: 1, journal: true } })
const app = fastify()

const text = { type: 'string', minLength: 1, maxLength: 4000 }
const properties = { clientOperationId: text, body: text, contentType: text }
const body = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
app.post<{ Body: Record<string, string> }>('/messages', { schema: { body } }, async (request, reply) => {
  const acceptedAt = new Date()
  const { insertedId } = await messages.insertOne({ ...request.body, acceptedAt })
  const { clientOperationId } = request.body
  return reply.code(202).send({ clientOperationId, messageId: insertedId, state: 'queued', acceptedAt })
})
await app.listen({ port: 0, host: '127.0.0.1' })

handleCommands(async (command: { do: 'port' | 'count' }) =>
  command.do === 'port' ? (app.server.address() as AddressInfo).port : messages.countDocuments(),
)
