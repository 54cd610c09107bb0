import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { BotService } from '#proto/bot/v1/bot_pb.js'

export const robo = { displayName: 'Robo', avatarUrl: 'https://shop.example/robo.png' }

/** Creates a client that sends the token of the demo's bot. */
export async function botOf({
  dataDir,
  cores,
}: {
  dataDir: string
  cores: { url: string }[]
}): Promise<Client<typeof BotService>> {
  const token = await readFile(join(dataDir, 'bot.token'), 'utf8')
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`)
    return next(request)
  }
  const baseUrl = cores[0]!.url
  return createClient(BotService, createConnectTransport({ baseUrl, httpVersion: '2', interceptors: [authorize] }))
}
