import { createClient } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { until } from '../../test/support/until.ts'
import { refusal } from '../test/core-answers.ts'
import { failureOf, SEND, startRpc } from '../test/test-rpc.ts'

describe('/rpc', () => {
  test.each(['json', 'binary'] as const)('forwards calls of the console to a core (%s)', async (format) => {
    const { transport, remote, session } = await startRpc()
    const client = createClient(MessagingService, transport(format))
    const { message } = await client.sendAgentMessage({ conversationId: 'cnv_1', body: 'Grüße' })
    expect(message).toMatchObject({ messageId: 'msg_1', body: 'Grüße' })
    expect(remote.calls[0]?.headers.get('authorization')).toBe(`Bearer ${session}`)
  })

  test('forwards code and details of an error', async () => {
    const { messaging, remote } = await startRpc()
    remote.refuse = refusal('NotFound')
    expect(await failureOf(messaging.sendAgentMessage({}))).toEqual(['FailedPrecondition', 'NotFound'])
  })

  test('forwards the correlation id of the request, but no proxy headers', async () => {
    const { post, remote } = await startRpc()
    const response = await post(SEND, {
      'x-correlation-id': 'corr-1',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil.example',
      forwarded: 'for=10.0.0.1',
      cookie: 'a=b',
      'x-real-ip': '10.0.0.1',
    })
    expect([response.status, response.headers.get('x-correlation-id')]).toEqual([200, 'corr-1'])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const { headers } = remote.calls[0]!
    expect(headers.get('x-correlation-id')).toBe('corr-1')
    for (const name of ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'cookie', 'x-real-ip', 'origin'])
      expect(headers.get(name), name).toBeNull()
  })

  test('forwards a stream unbuffered, and cancels the call when the client disconnects', async () => {
    const { messaging, remote } = await startRpc()
    const leave = new AbortController()
    const seen: (string | undefined)[] = []
    const reading = (async () => {
      const onHeader = (headers: Headers) => expect(headers.get('x-accel-buffering')).toBe('no')
      for await (const { frame } of messaging.watchConversations({}, { signal: leave.signal, onHeader })) {
        seen.push(frame.case)
        if (frame.case === 'ready') remote.tell()
        else leave.abort()
      }
    })()
    expect(await failureOf(reading)).toEqual(['Canceled', undefined])
    expect(seen).toEqual(['ready', 'heartbeat'])
    await until('the watch call to end', () => remote.watching === 0)
  })

  test('refuses the 31st open stream of an operator’s session, and allows it when the client has closed one', async () => {
    const { messaging, remote } = await startRpc()
    const leaving = Array.from({ length: 30 }, () => new AbortController())
    const open = leaving.map(async ({ signal }) => {
      for await (const _ of messaging.watchConversations({}, { signal }));
    })
    const ended = Promise.allSettled(open)
    await until('all streams', () => remote.watching === 30)
    const read = async () => {
      for await (const { frame } of messaging.watchConversations({})) return frame.case
    }
    expect(await failureOf(read())).toEqual(['ResourceExhausted', 'RateLimited'])
    expect(remote.watching).toBe(30)
    leaving[0]!.abort()
    await until('the stream to end', () => remote.watching === 29)
    expect(await read()).toBe('ready')
    for (const each of leaving) each.abort()
    await ended
  })

  test('streams a complete screenshot', async () => {
    const { transport } = await startRpc()
    let bytes = 0
    for await (const { part } of createClient(CommandService, transport('binary')).getScreenshot({
      commandId: 'scr_1',
    }))
      if (part.case === 'chunk') bytes += part.value.length
    expect(bytes).toBe(600_000)
  })

  test('breaks streams off, without an end frame, when the gateway stops', async () => {
    const { messaging, gateway, remote } = await startRpc()
    const reading = (async () => {
      for await (const { frame } of messaging.watchConversations({})) if (frame.case === 'ready') void gateway.close()
    })()
    expect(await failureOf(reading)).toEqual(['Unknown', undefined])
    await until('the watch call to end', () => remote.watching === 0)
  })
})

describe('/rpc with several cores', () => {
  test('uses the next core if one is unreachable', async () => {
    const { messaging, wired } = await startRpc({ cores: 3 })
    await wired[0]!.die()
    await wired[1]!.die()
    for (let n = 0; n < 4; n += 1) await messaging.sendAgentMessage({ body: 'Hello' })
    expect(wired[2]!.calls).toHaveLength(4)
  })

  test('repeats a call on another core only if its method is repeatable', async () => {
    const { messaging, wired } = await startRpc({ cores: 2 })
    for (const core of wired) core.held = new Promise(() => {})
    const listing = messaging.listConversations({})
    await until('a core to be called', () => wired.some(({ calls }) => calls.length > 0))
    const [first, second] = wired[0]!.calls.length > 0 ? wired : [wired[1]!, wired[0]!]
    second!.held = undefined
    await first!.die()
    expect((await listing).conversations).toEqual([])

    const { transport, wired: others } = await startRpc({ cores: 2 })
    for (const core of others) core.held = new Promise(() => {})
    const making = failureOf(createClient(WorkspaceService, transport()).createConnection({ name: 'Site' }))
    const asked = await until('a core to be called', () => others.find(({ calls }) => calls.length > 0))
    for (const core of others) core.held = undefined
    await asked.die()
    expect(await making).toEqual(['Unavailable', 'ServiceUnavailable'])
    expect(others.flatMap(({ calls }) => calls)).toHaveLength(1)
  })

  test('answers `unavailable` in the Connect protocol if no core is reachable', async () => {
    const { messaging, wired, lines, session } = await startRpc()
    await wired[0]!.die()
    expect(await failureOf(messaging.sendAgentMessage({}))).toEqual(['Unavailable', 'ServiceUnavailable'])
    const stream = messaging.watchConversations({})[Symbol.asyncIterator]()
    expect(await failureOf(stream.next())).toEqual(['Unavailable', 'ServiceUnavailable'])
    expect(lines.join('\n')).not.toContain(session)
  })
})
