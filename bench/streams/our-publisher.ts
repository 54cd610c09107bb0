// Publisher process for the service: calls SendAgentMessage of the core over Connect.
import { readFile } from 'node:fs/promises'
import { createClient } from '@connectrpc/connect'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { connectService } from '../../core-client/index.ts'
import { publishWith } from './publishing.ts'

const [coreUrl = '', demoFile = ''] = process.argv.slice(2)
const { serviceToken } = JSON.parse(await readFile(demoFile, 'utf8'))
const { transport } = await connectService({ urls: [coreUrl], token: serviceToken })
const messaging = createClient(MessagingService, transport)

publishWith((conversationId, clientOperationId, body) =>
  messaging.sendAgentMessage({ conversationId, clientOperationId, body, agent: { displayName: 'Ada' } }),
)
