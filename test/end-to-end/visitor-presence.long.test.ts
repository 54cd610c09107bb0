import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'
import { followPresence } from '../support/visitor-presence.ts'

const database = testDatabase()
let stack: Stack
const stops: (() => void)[] = []

beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
})
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

/** Keeps a visitor's stream open and reports `here`, as the widget does. */
function keepChatShown(visitor: Visitor) {
  let isOver = false
  let stream: EventStream | undefined
  const vias = stack.gateways.map(({ url }) => url)
  const eachWay = async <T>(attempt: (via: string) => Promise<T>): Promise<T | undefined> => {
    for (const via of vias) {
      const answer = await attempt(via).catch(() => undefined)
      if (answer !== undefined) return answer
    }
    return undefined
  }
  void (async () => {
    while (!isOver) {
      stream = await eachWay((via) => visitor.openStream({ via }))
      await stream?.ended
      await delay(500)
    }
  })()
  void (async () => {
    while (!isOver) {
      const answer = await eachWay((via) =>
        visitor.call('POST', '/presence', { body: { tab: 'a', state: 'here' }, via }),
      )
      await delay(answer?.status === 204 ? 2_000 : 1_000)
    }
  })()
  const stop = () => {
    isOver = true
    stream?.close()
  }
  stops.push(stop)
  return stop
}

/** Records the states of a conversation on both cores for a while. */
async function statesDuring(conversationId: string, inboxes: ReturnType<typeof followPresence>[], ms: number) {
  const seen = new Set<Presence>()
  for (const end = performance.now() + ms; performance.now() < end; await delay(50))
    for (const inbox of inboxes) seen.add(inbox.of(conversationId))
  return seen
}

function follow(cores = [0, 1]) {
  const inboxes = cores.map((core) => followPresence(stack.operator(core), stack.demo.workspaceId))
  stops.push(...inboxes.map(({ close }) => close))
  return inboxes
}

it('the presence of a visitor stays `here` while each gateway and each core is killed in turn', async () => {
  const visitor = await stack.newVisitor()
  const { conversationId } = visitor.session
  const inboxes = follow()
  keepChatShown(visitor)
  await until('here', () => inboxes.every((inbox) => inbox.of(conversationId) === Presence.HERE))
  for (const part of stack.gateways) {
    await part.kill()
    expect(await statesDuring(conversationId, inboxes, 6_000)).toEqual(new Set([Presence.HERE]))
    await part.start()
    await until('the gateway', async () => (await fetch(`${part.url}/readyz`)).ok)
  }
  for (const [index, part] of [...stack.cores.entries()].reverse()) {
    // Both gateways need their connections to the restarted core first.
    await delay(3_000)
    await part.kill()
    expect(await statesDuring(conversationId, [inboxes[1 - index]!], 6_000), `core ${index}`).toEqual(
      new Set([Presence.HERE]),
    )
    await part.start()
    await until('the restarted core', () => inboxes[index]!.of(conversationId) === Presence.HERE)
  }
})
