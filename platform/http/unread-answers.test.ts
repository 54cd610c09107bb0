import { Writable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { createUnreadAnswers } from './unread-answers.ts'

const limits = { maxMs: 8_000, maxBytes: 1_000, totalMaxBytes: 4_000 }

/** A connection whose client reads only when `read` is called. */
function createClient() {
  const pending: { bytes: number; done: () => void }[] = []
  let written = 0
  const connection = Object.assign(
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        pending.push({ bytes: chunk.length, done })
      },
    }),
    { bytesWritten: 0 },
  )
  return {
    connection,
    write(bytes: number) {
      written += bytes
      connection.bytesWritten = written
      if (!connection.destroyed) connection.write(Buffer.alloc(bytes))
    },
    read: () => pending.shift()?.done(),
  }
}

type Client = ReturnType<typeof createClient>

function createServer(count: number) {
  const answers = createUnreadAnswers(limits)
  const clients = Array.from({ length: count }, createClient)
  for (const { connection } of clients) answers.add(connection)
  return {
    clients,
    pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 1_000) answers.check()
    },
    open: () => clients.filter(({ connection }) => !connection.destroyed),
  }
}

const unsent = (clients: Client[]) => clients.reduce((sum, { connection }) => sum + connection.writableLength, 0)

describe('unread answers', () => {
  it('end their connection after a time without progress, even if more is written meanwhile', () => {
    const { clients, pass } = createServer(2)
    for (const client of clients) client.write(10)
    for (let second = 0; second < 4; second++) {
      clients[0]!.write(10)
      clients[1]!.write(10)
      clients[1]!.read()
      pass(1_000)
    }
    pass(5_000)
    expect(clients.map(({ connection }) => connection.destroyed)).toEqual([true, false])
  })

  it('do not end a connection that was idle for long before its answer', () => {
    const { clients, pass } = createServer(1)
    pass(60_000)
    clients[0]!.write(10)
    pass(4_000)
    expect(clients[0]!.connection.destroyed).toBe(false)
    pass(5_000)
    expect(clients[0]!.connection.destroyed).toBe(true)
  })

  it('end their connection above the limit of one connection', () => {
    const { clients, pass } = createServer(2)
    clients[0]!.write(1_001)
    clients[1]!.write(1_000)
    pass(1_000)
    expect(clients.map(({ connection }) => connection.destroyed)).toEqual([true, false])
  })

  it('end the connections that wait longest if all together are above the limit', () => {
    const { clients, pass } = createServer(6)
    for (const client of clients) {
      client.write(900)
      pass(1_000)
    }
    expect(clients.map(({ connection }) => connection.destroyed)).toEqual([true, true, false, false, false, false])
  })

  it('stay within the limits for any behaviour of clients, and never end a client without unsent bytes', () => {
    const step = fc.record({ client: fc.nat(9), bytes: fc.integer({ min: 1, max: 1_500 }), reads: fc.boolean() })
    forAll([fc.array(step, { maxLength: 80 })], runs(200, 20), (steps) => {
      const { clients, pass, open } = createServer(10)
      const silent = clients.at(-1)!
      for (const { client, bytes, reads } of steps) {
        const chosen = clients[client % 9]!
        chosen.write(bytes)
        if (reads) chosen.read()
        pass(1_000)
        expect(unsent(open())).toBeLessThanOrEqual(limits.totalMaxBytes)
        for (const each of open()) expect(unsent([each])).toBeLessThanOrEqual(limits.maxBytes)
      }
      expect(silent.connection.destroyed).toBe(false)
      pass(limits.maxMs + 1_000)
      expect(unsent(open())).toBe(0)
    })
  })
})
