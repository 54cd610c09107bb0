import { setImmediate as turn } from 'node:timers/promises'
import type { DescMethod } from '@bufbuild/protobuf'
import { Code, ConnectError, createContextValues, type HandlerContext } from '@connectrpc/connect'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { createCoreMetrics } from '../metrics.ts'
import { bareCore } from '../test/core-with.ts'
import { createCallGate } from './call-gate.ts'
import { accessOf } from './caller.ts'

const { getConversation, listConversations, listVisitorMessages, sendVisitorMessages } = MessagingService.method
const { getConfig, getPicture } = SessionService.method

/** A gate that accepts any token, and calls that stay open until they are told to leave. */
function openGate({ callsMax = 1_000 } = {}) {
  const core = bareCore({
    config: { CALLS_MAX: callsMax },
    logger: pino({ level: 'silent' }),
    metrics: createCoreMetrics(),
    now: Date.now,
    reads: createSlots({ max: 4, waitingMax: callsMax }),
  })
  accessOf.set(core, { authenticate: async (tokenId: string) => ({ tokenId }) } as never)
  const gate = createCallGate(core)
  const call = (method: DescMethod, signal = new AbortController().signal, authorization = 'one') => {
    const state: { leave?: () => void; code?: Code } = {}
    const context = {
      method,
      service: method.parent,
      signal,
      requestHeader: new Headers({ authorization }),
      url: 'http://core/',
    }
    gate.admit({ ...context, values: createContextValues() } as unknown as HandlerContext).then(
      (leave) => {
        state.leave = leave
      },
      (error) => {
        state.code = ConnectError.from(error).code
      },
    )
    return state
  }
  return { gate, call }
}

const running = (calls: { leave?: () => void }[]) => calls.filter(({ leave }) => leave !== undefined).length

describe('when operators and services read one thing each, hundreds at once', () => {
  it('eight run at once, and the next one starts when one of them has ended', async () => {
    const { call } = openGate()
    const reads = Array.from({ length: 300 }, () => call(getConversation))
    await turn()
    expect(running(reads)).toBe(8)
    reads[3]!.leave!()
    await turn()
    expect(reads[8]!.leave).toBeDefined()
    expect(running(reads)).toBe(9)
  })

  it('sends, reads of visitors, lists and requests for the configuration do not wait for them', async () => {
    const { call } = openGate()
    for (let index = 0; index < 300; index += 1) call(getConversation)
    const { getSignInLink } = ConsoleService.method
    const visitors = [sendVisitorMessages, listVisitorMessages, getConfig, getPicture, getSignInLink]
    const others = [...visitors, listConversations].map((method) => call(method))
    await turn()
    expect(running(others)).toBe(6)
  })

  it('one that is cancelled while it waits takes no place', async () => {
    const { call } = openGate()
    const [first] = Array.from({ length: 8 }, () => call(getConversation))
    const cancelled = new AbortController()
    const waiting = call(getConversation, cancelled.signal)
    const next = call(getConversation)
    await turn()
    cancelled.abort()
    await turn()
    expect(waiting.code).toBe(Code.Canceled)
    first!.leave!()
    await turn()
    expect(next.leave).toBeDefined()
  })

  it('those beyond the bound of waiting calls are refused as unavailable', async () => {
    const { call } = openGate({ callsMax: 5 })
    const reads = Array.from({ length: 14 }, () => call(getConversation))
    await turn()
    expect(running(reads)).toBe(8)
    expect(reads.map(({ code }) => code).filter((code) => code !== undefined)).toEqual([Code.Unavailable])
  })
})

it('a token has at most 32 open streams of the event feed, and other tokens have their own', async () => {
  const { call } = openGate()
  const follow = (token: string) => call(EventsService.method.followEvents, undefined, token)
  const streams = Array.from({ length: 40 }, () => follow('one'))
  await turn()
  expect(running(streams)).toBe(32)
  expect(streams.slice(32).map(({ code }) => code)).toEqual(Array(8).fill(Code.ResourceExhausted))
  const other = follow('two')
  streams[0]!.leave!()
  const next = follow('one')
  await turn()
  expect(running([other, next])).toBe(2)
})

it.each([
  [sendVisitorMessages, 0],
  [listVisitorMessages, 1],
])('a call of $name asks for its signal only if it may wait', async (method, times) => {
  let asked = 0
  const context = {
    method,
    service: method.parent,
    values: createContextValues(),
    requestHeader: new Headers(),
    url: 'http://core/',
    get signal() {
      asked += 1
      return new AbortController().signal
    },
  }
  await openGate().gate.admit(context as unknown as HandlerContext)
  expect(asked).toBe(times)
})
