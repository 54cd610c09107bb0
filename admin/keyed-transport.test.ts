import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { createKeyedTransport, UnknownOutcomeError } from './keyed-transport.ts'

/** A core that fails so many times before it answers. */
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
  return { keys, client: createClient(WorkspaceService, createKeyedTransport(transport, { key: 'k1', retryMs: 0 })) }
}

describe('a write of the admin command', () => {
  it('carries the key of the command', async () => {
    const { keys, client } = coreThatFails(0, Code.Unavailable)
    await client.rotateIdentitySecret({ siteKey: 'pk' })
    expect(keys).toEqual(['k1'])
  })

  it('is repeated with the same key when its answer does not come', async () => {
    const { keys, client } = coreThatFails(2, Code.Unavailable)
    expect((await client.rotateIdentitySecret({ siteKey: 'pk' })).identitySecret?.kid).toBe('key_1')
    expect(keys).toEqual(['k1', 'k1', 'k1'])
  })

  it('that is never answered fails with the key to repeat it by', async () => {
    const { client } = coreThatFails(9, Code.DeadlineExceeded)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toThrow(UnknownOutcomeError)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toThrow(/repeat the command with --key k1$/)
  })

  it('that is refused is not repeated', async () => {
    const { keys, client } = coreThatFails(9, Code.NotFound)
    await expect(client.rotateIdentitySecret({ siteKey: 'pk' })).rejects.toMatchObject({ code: Code.NotFound })
    expect(keys).toHaveLength(1)
  })
})

it('a read of the admin command carries no key', async () => {
  const { client } = coreThatFails(0, Code.Unavailable)
  expect(await client.listWorkspaces({})).toMatchObject({ workspaces: [] })
})
