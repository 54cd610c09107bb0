import { createClient } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'

const cores = testCores({ started: false })

it('operators get the correlation id of the request that stored a message, and visitors get none', async () => {
  const { credentials, conversationId, workspaceId } = await cores.newVisitor()
  const token = await accessOf(cores.core).issue({ subject: 'gateway', scopes: ['visitors:act'] })
  const visitors = createClient(MessagingService, createAuthorizedTransport(transportTo(cores.core), token))
  const send = (clientOperationId: string, correlationId: string) =>
    visitors.sendVisitorMessages({
      messages: [{ credentials, clientOperationId, body: 'Hello', contentType: 'text', correlationId }],
    })
  await send('first', 'stored-1')
  await send('first', 'repeated-1')
  const invalid = ['', 'two words', 'x'.repeat(65), 'line\nfeed']
  for (const [index, each] of invalid.entries()) await send(`invalid-${index}`, each)
  await send('last', '__proto__')

  const { messaging } = await clientsOf(cores.core, workspaceId)
  const forOperators = await messaging.listMessages({ conversationId })
  expect(forOperators.messages.map(({ correlationId }) => correlationId)).toEqual([
    'stored-1',
    undefined,
    undefined,
    undefined,
    undefined,
    '__proto__',
  ])
  const forVisitors = await visitors.listVisitorMessages({ credentials })
  expect(forVisitors.messages.map(({ correlationId }) => correlationId)).toEqual(Array(6).fill(undefined))
})
