import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { expect, it, onTestFinished } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { listenForRpc } from '../test/support/rpc-port.ts'
import { connectService } from './index.ts'

/** Starts a core whose stream sends a frame every 50 ms. */
async function startStreaming() {
  const { port, kill } = await listenForRpc(
    connectNodeAdapter({
      routes(router) {
        router.service(MessagingService, {
          async *watchConversations(_request, { signal }) {
            while (!signal.aborted) {
              yield { frame: { case: 'heartbeat' as const, value: {} } }
              await delay(50)
            }
          },
        })
      },
    }),
  )
  onTestFinished(kill)
  return `http://127.0.0.1:${port}`
}

it('a stream has no deadline unless the caller sets one', async () => {
  const { transport, stop } = await connectService({ urls: [await startStreaming()], token: 'a.b.c', deadlineMs: 200 })
  onTestFinished(stop)
  const client = createClient(MessagingService, transport)
  let frames = 0
  for await (const frame of client.watchConversations({})) if (frame && ++frames === 20) break
  expect(frames).toBe(20)

  const limited = (async () => {
    for await (const frame of client.watchConversations({}, { timeoutMs: 200 })) void frame
  })()
  expect(Code[ConnectError.from(await limited.catch((error) => error)).code]).toBe('DeadlineExceeded')
})

it.each(['secret\nx', 'secret\r\n', 'secret€', 'secret x', ''])(
  'an invalid token is rejected and not quoted',
  async (token) => {
    const urls = ['http://127.0.0.1:1']
    const error = await connectService({ urls, token }).catch((failure) => failure)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).not.toContain('secret')
  },
)
