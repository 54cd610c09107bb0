import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createHttpClient } from './http-client.ts'
import { tlsFaultOf } from './system-codes.ts'

it('says in words that a core answers without TLS, and nothing of a core that is away', async () => {
  const server = createServer().listen(0)
  const { port } = server.address() as AddressInfo
  const client = createHttpClient(`https://localhost:${port}`)
  const probe = () => client.probe(AbortSignal.timeout(10_000)).catch((error: unknown) => error)
  expect(tlsFaultOf(await probe())).toContain('does not answer with TLS')
  await new Promise((resolve) => server.close(resolve))
  expect(tlsFaultOf(await probe())).toBeUndefined()
  await client.close()
})
