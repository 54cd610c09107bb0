import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { until } from '../../test/support/until.ts'
import { createSocketNudge, type SocketNudge } from '../engine/nudge.ts'

const folder = mkdtempSync(join(tmpdir(), 'nudge-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const maxWaitMs = 2 ** 30

/** Creates nudges one after the other. Resolves when each reaches each other one. */
async function linked(...names: string[]): Promise<SocketNudge[]> {
  const nudges: SocketNudge[] = []
  for (const name of names) {
    const place = join(folder, name)
    const known = existsSync(place) ? readdirSync(place).length : 0
    nudges.push(createSocketNudge(place))
    await until('the nudge listens', () => readdirSync(place).length > known)
  }
  for (const [index, one] of nudges.entries()) {
    const others = nudges.filter((_, other) => other !== index && names[other] === names[index])
    const counts = others.map((other) => other.count())
    await until('the nudges are linked', () => {
      one.announce()
      return others.every((other, at) => other.count() > counts[at]!)
    })
  }
  return nudges
}

test('a wait for wake-ups ends when another process announces a wake-up, even if the announcement came before the wait began', async () => {
  const [one, other] = await linked('a', 'a')
  const known = other!.count()
  const waiting = other!.after(known, maxWaitMs)
  one!.announce()
  await waiting
  expect(other!.count()).toBeGreaterThan(known)
  await other!.after(known, maxWaitMs)
  for (const nudge of [one, other]) nudge!.close()
})

test('without an announced wake-up, a wait ends at its timeout or when the nudge is closed', async () => {
  const [nudge] = await linked('b')
  await nudge!.after(nudge!.count(), 1)
  const waiting = nudge!.after(nudge!.count(), maxWaitMs)
  nudge!.close()
  await waiting
  nudge!.announce()
  nudge!.close()
  await nudge!.after(nudge!.count(), maxWaitMs)
})

test('new ends of logs reach all other processes of the folder in order, with their events, and no others', async () => {
  const nudges = await linked('c', 'c', 'c', 'd')
  // Processes that start together may be linked twice, so that each message arrives twice.
  const received = nudges.map((nudge) => {
    const messages = new Map<unknown, unknown>()
    nudge.onPassed(({ heads }) => messages.set(heads[0]![1], heads))
    return messages
  })
  const body = 'é'.repeat(100_000)
  const event = {
    conversationId: 'c',
    sequence: 1,
    type: 'message.received',
    occurredAt: new Date(),
    message: { body },
  }
  const heads = [
    [['c', 1, false, event]],
    [
      ['c', 2, true],
      ['d', 7, false],
    ],
  ]
  for (const each of heads) nudges[0]!.pass({ heads: each as never })
  await until('all have arrived', () => received[1]!.size === 2 && received[2]!.size === 2)
  expect(received.map((messages) => [...messages.values()])).toEqual([[], heads, heads, []])
  for (const nudge of nudges) nudge.close()
})

test('a new nudge removes the sockets of dead processes and keeps the sockets of running processes', async () => {
  const place = join(folder, 'e')
  mkdirSync(place)
  // The process ends without closing its socket.
  const script = `require('node:net').createServer().listen(${JSON.stringify(join(place, 'dead'))}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  const running = createServer().listen(join(place, 'running'))
  await until('both sockets exist', () => readdirSync(place).length === 2)
  const nudge = createSocketNudge(place)
  await until('the socket of the dead process is removed', () => !readdirSync(place).includes('dead'))
  nudge.close()
  expect(readdirSync(place)).toEqual(['running'])
  running.close()
})

test('if the path is too long to listen, each wait ends after a few milliseconds', async () => {
  const nudge = createSocketNudge(join(folder, 'f'.repeat(100)))
  await until('a wait ends', async () => {
    await nudge.after(nudge.count(), 5)
    const began = performance.now()
    await nudge.after(nudge.count(), maxWaitMs / 2 ** 14)
    return performance.now() - began < 60_000
  })
  nudge.close()
})
