import { type ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport as createWebTransport } from '@connectrpc/connect-web'
import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { useLocalStack } from '../support/local-stack.ts'

const stack = useLocalStack()

describe('the demo’s workspace session', () => {
  test('has every operator scope for the demo workspace and an expiry', () => {
    const { scope, wid, exp, aud } = decodeJwt(stack.demo.workspaceSession)
    expect(new Set(String(scope).split(' '))).toEqual(operatorScopes)
    expect([wid, aud]).toEqual([stack.demo.workspaceId, 'service.workspace'])
    expect(exp).toBeGreaterThan(Date.now() / 1000)
  })

  test('gives the console access to the cores through the gateway', async () => {
    const { url } = stack.gateways[0]!
    const headers = { authorization: `Bearer ${stack.demo.workspaceSession}` }
    const client = createClient(MessagingService, createWebTransport({ baseUrl: `${url}/rpc` }))
    expect(await client.listConversations({}, { headers })).toMatchObject({ conversations: [] })
    const other = client.listConversations({ workspaceId: 'ws_other' }, { headers })
    expect(await other.catch((error: ConnectError) => error.rawMessage)).toBe('NotFound')
    const leave = new AbortController()
    const frames = client.watchConversations({}, { headers, signal: leave.signal })[Symbol.asyncIterator]()
    expect((await frames.next()).value?.frame.case).toBe('ready')
    leave.abort()
  })
})
