import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { createKeyedTransport, UnknownOutcomeError } from './keyed-transport.ts'

/** A core that fails the given number of times before it answers. */
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

describe('keyed transport, writes', () => {
  it('sends the key of the command', async () => {
    const { keys, client } = coreThatFails(0, Code.Unavailable)
    await client.rotateIdentitySecret({ siteKey: 'pk' })
    expect(keys).toEqual(['k1'])
  })

  it('retries with the same key if there is no answer', async () => {
    const { keys, client } = coreThatFails(2, Code.Unavailable)
    expect((await client.rotateIdentitySecret({ siteKey: 'pk' })).identitySecret?.kid).toBe('key_1')
    expect(keys).toEqual(['k1', 'k1', 'k1'])
  })

  it('fails with the key to use for a repeat if no retry is answered', async () => {
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

it('sends no key with a read', async () => {
  const { client } = coreThatFails(0, Code.Unavailable)
  expect(await client.listWorkspaces({})).toMatchObject({ workspaces: [] })
})
