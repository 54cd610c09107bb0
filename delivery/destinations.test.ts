import net, { isIP } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { createAddressCheck } from '../platform/addresses/addresses.ts'
import { createResolver, type Lookup } from '../platform/addresses/resolve.ts'
import { oddSpellings, publicV4, publicV6, refusedV4, refusedV6 } from '../test/support/addresses.ts'
import { startReceiver } from '../test/support/receiver.ts'
import { createSender } from './sender.ts'

const receiver = await startReceiver()
afterAll(() => receiver.close())

const isAddressAllowed = createAddressCheck({ allowedCidrs: [] })
const [goodV4 = '', goodV6 = ''] = [publicV4[4], publicV6[5]]
const never = new AbortController().signal
const blocked = (phase: AttemptPhase) => ({
  case: 'failure',
  value: { phase, reason: FailureReason.DESTINATION_BLOCKED },
})

/** A sender that connects every address to the test receiver. */
function senderOf(lookup: Lookup) {
  return createSender({
    resolver: createResolver({ isAllowed: isAddressAllowed, lookup }),
    responseMaxBytes: 65_536,
    maxIdle: 4,
    dial: () => net.connect({ host: '127.0.0.1', port: receiver.port }),
  })
}

/** A lookup that returns the next of the given address lists on each call. */
function named(...answers: string[][]): Lookup {
  let call = 0
  return async () => {
    const addresses = answers[Math.min(call++, answers.length - 1)] ?? []
    return addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }))
  }
}

const send = (url: string, lookup: Lookup = named([goodV4])) =>
  senderOf(lookup).send({ url, headers: {}, body: new Uint8Array(2), deadlineMs: 20_000 }, never)

const inUrl = (address: string) => (address.includes(':') ? `[${address}]` : address)

/** Runs a function and returns how many TCP connections the receiver got during it. */
async function connectionsOf(run: () => Promise<unknown>): Promise<number> {
  const before = receiver.connections()
  await run()
  // Waits one more turn of the event loop for a connection that is still being opened.
  await new Promise((resolve) => setImmediate(resolve))
  return receiver.connections() - before
}

describe('blocked destinations', () => {
  it.each([...refusedV4, ...refusedV6.filter((address) => !address.includes('%')), ...oddSpellings])(
    'the sender makes no connection to the address %s in the URL',
    async (address) => {
      const host = address.startsWith('[') ? address : inUrl(address)
      for (const scheme of ['http', 'https']) {
        const reached = await connectionsOf(async () => {
          expect(await send(`${scheme}://${host}:8080/`)).toEqual(blocked(AttemptPhase.RESOLVE))
        })
        expect(reached).toBe(0)
      }
    },
  )

  it.each([...refusedV4, ...refusedV6])(
    'the sender makes no connection to a name that resolves to %s, alone or among allowed addresses',
    async (address) => {
      for (const addresses of [[address], [goodV4, address], [address, goodV6]]) {
        const reached = await connectionsOf(async () => {
          expect(await send('https://crm.example/', named(addresses))).toEqual(blocked(AttemptPhase.RESOLVE))
        })
        expect(reached).toBe(0)
      }
    },
  )

  it.each([
    'ftp://crm.example/',
    'http://user:secret@crm.example/',
    'http://crm.example:0/',
    'http://crm.example/#x',
    'http://localhost\\@crm.example/',
    'http://[fe80::1%25eth0]/',
    '',
  ])('the sender makes no connection to %j, which is not a valid destination', async (url) => {
    const reached = await connectionsOf(async () => {
      expect(await send(url)).toEqual(blocked(AttemptPhase.RESOLVE))
    })
    expect(reached).toBe(0)
  })
})

describe('the sender', () => {
  it('the sender sends nothing if the socket is connected to another address than the checked one', async () => {
    const requests = receiver.requests.length
    const reached = await connectionsOf(async () => {
      expect(await send('http://crm.example/200')).toEqual(blocked(AttemptPhase.CONNECT))
    })
    // The sender connected once, so the receiver was reachable and only the request was blocked.
    expect(reached).toBe(1)
    expect(receiver.requests).toHaveLength(requests)
  })

  it('the sender checks the addresses again for each attempt, even if a connection is idle in the pool', async () => {
    const allowing = createAddressCheck({ allowedCidrs: ['127.0.0.1/32'] })
    const sender = createSender({
      resolver: createResolver({
        isAllowed: allowing,
        lookup: named(['127.0.0.1'], ['127.0.0.2'], ['127.0.0.1', '10.0.0.1']),
      }),
      responseMaxBytes: 65_536,
      maxIdle: 4,
    })
    const request = {
      url: `http://crm.example:${receiver.port}/200`,
      headers: {},
      body: new Uint8Array(2),
      deadlineMs: 20_000,
    }
    const requests = receiver.requests.length
    expect(await sender.send(request, never)).toEqual({ case: 'response', value: { status: 200 } })
    expect(sender.idleConnections()).toBe(1)
    expect(await sender.send(request, never)).toEqual(blocked(AttemptPhase.RESOLVE))
    expect(await sender.send(request, never)).toEqual(blocked(AttemptPhase.RESOLVE))
    expect(receiver.requests).toHaveLength(requests + 1)
    await sender.close()
  })
})

it('the worker ignores proxy environment variables', async () => {
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
  const { vi } = await import('vitest')
  for (const name of names) vi.stubEnv(name, name === 'NODE_USE_ENV_PROXY' ? '1' : receiver.http)
  const reached = await connectionsOf(async () => {
    expect(await send('http://169.254.169.254/latest/meta-data/')).toEqual(blocked(AttemptPhase.RESOLVE))
  })
  vi.unstubAllEnvs()
  expect(reached).toBe(0)
})
