import { isIP } from 'node:net'
import { onTestFinished } from 'vitest'
import type { AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { createAddressCheck } from '../../platform/addresses/addresses.ts'
import { createResolver, type Lookup } from '../../platform/addresses/resolve.ts'
import { testAuthority } from '../../test/support/certificates.ts'
import { createSender, type Outcome, type ReadyRequest, type SenderOptions } from '../sender.ts'

const loopback = createAddressCheck({ allowedCidrs: ['127.0.0.0/8'] })
/** A lookup that returns these addresses for every name. */
export const named = (...addresses: string[]): Lookup => {
  return async () => addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }))
}

/** Creates a sender to addresses of this machine. It is closed at the end of the test. */
export function senderWith(options: Partial<SenderOptions> & { lookup?: Lookup } = {}) {
  const { lookup = named('127.0.0.1'), ...rest } = options
  const resolver = createResolver({ isAllowed: loopback, lookup })
  const sender = createSender({ resolver, responseMaxBytes: 65_536, maxIdle: 4, ca: testAuthority, ...rest })
  onTestFinished(() => sender.close())
  return sender
}

export const body = new TextEncoder().encode('{"eventType":"lead.ready-for-delivery","data":{"name":"Zoë"}}')
export const request = (url: string, more: Partial<ReadyRequest> = {}): ReadyRequest => ({
  url,
  headers: { 'content-type': 'application/json', 'x-service-webhook-id': 'dlv_1' },
  body,
  deadlineMs: 20_000,
  ...more,
})
export const never = new AbortController().signal
export const send = (url: string, more?: Partial<ReadyRequest>) => senderWith().send(request(url, more), never)
/** Returns the outcome for an answer of the receiver with the body `text`. */
export const answered = (status: number, text = '{"received":true}'): Outcome => ({
  case: 'response',
  value: { status, ...(status >= 300 && text !== '' && { text }) },
})
export const failed = (phase: AttemptPhase, reason: FailureReason): Outcome => ({
  case: 'failure',
  value: { phase, reason },
})
