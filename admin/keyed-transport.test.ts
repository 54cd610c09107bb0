import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { createCoreTransport } from '../core-client/core-transport.ts'
import { startSilentServer } from '../test/support/silent-server.ts'
import { createKeyedTransport, UnknownOutcomeError } from './keyed-transport.ts'

/** A core whose first `times` calls fail with `code`. Later calls succeed. */
function coreThatFails(times: number, code: Code) {
  const keys: (string | undefined)[] = []
  const transport = createRouterTransport(({ service }) => {
    service(WorkspaceService, {
      rotateIdentitySecret({ idempotencyKey }) {
        keys.push(idempotencyKey)
        if (keys.length <= times) throw new ConnectError('no answer', code)
        return { identitySecret: { kid: 'key_1', secret: 'secret' } }
      },
      listWorkspaces: () => ({ workspaces: [] }),
    })
  })
  return { keys, client: createClient(WorkspaceService, createKeyedTransport(transport, 'k1', { retryMs: 0 })) }
}

describe('a transport that adds idempotency keys', () => {
  it('sends a write with the idempotency key of the administration command', async () => {
    const { keys, client } = coreThatFails(0, Code.Unavailable)
    await client.rotateIdentitySecret({ siteKey: 'pk' })
    expect(keys).toEqual(['k1'])
  })

  it('retries a write with the same idempotency key if the core does not answer', async () => {
    const { keys, client } = coreThatFails(2, Code.Unavailable)
    expect((await client.rotateIdentitySecret({ siteKey: 'pk' })).identitySecret?.kid).toBe('key_1')
    expect(keys).toEqual(['k1', 'k1', 'k1'])
  })

  it('fails with an error that contains the idempotency key if no retry is answered', async () => {
    const { client } = coreThatFails(9, Code.DeadlineExceeded)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toThrow(UnknownOutcomeError)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toThrow(/repeat the command with --key k1$/)
  })

  it('does not retry a rejected write', async () => {
    const { keys, client } = coreThatFails(9, Code.NotFound)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toMatchObject({ code: Code.NotFound })
    expect(keys).toHaveLength(1)
  })
})

it('a call to a core that accepts the connection and never answers ends at the deadline', async () => {
  const { port } = await startSilentServer()
  const core = createCoreTransport(`http://127.0.0.1:${port}`)
  onTestFinished(() => core.cut())
  const client = createClient(WorkspaceService, createKeyedTransport(core, 'k1', { deadlineMs: 100 }))
  await expect(client.listWorkspaces({})).rejects.toMatchObject({ code: Code.DeadlineExceeded })
})

it('a transport that adds idempotency keys adds no key to a read', async () => {
  const { client } = coreThatFails(0, Code.Unavailable)
  expect(await client.listWorkspaces({})).toMatchObject({ workspaces: [] })
})
