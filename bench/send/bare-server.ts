// Server process for comparison: Fastify alone, which stores each message before it answers.
// Arguments: the kind of store, and its folder, URI or port.
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { handleCommands } from '../commands.ts'
import { type BareMessage, messageStores } from './message-stores.ts'

const [kind = '', place = ''] = process.argv.slice(2)
const app = fastify()
const store = await messageStores[kind as keyof typeof messageStores](place, app.server)

const text = { type: 'string', minLength: 1, maxLength: 4000 }
const properties = { clientOperationId: text, body: text, contentType: text }
const body = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
app.post<{ Body: BareMessage }>('/messages', { schema: { body } }, async (request, reply) => {
  const acceptedAt = new Date()
  const messageId = await store.put(request.body)
  const { clientOperationId } = request.body
  return reply.code(202).send({ clientOperationId, messageId, state: 'queued', acceptedAt })
})
await app.listen({ port: 0, host: '127.0.0.1' })

handleCommands(async (command: { do: 'port' | 'count' }) =>
  command.do === 'port' ? (app.server.address() as AddressInfo).port : store.count(),
)
