import { create } from '@bufbuild/protobuf'
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { GatewayError } from '../errors.ts'

export const EPOCH = 'e1'
export const SESSION_END = Date.UTC(2030, 0, 1)

/** A session as the core returns it. */
export const sessionOf = (sessionId: string) => ({
  sessionId,
  conversationId: 'cnv_1',
  accessGrant: sessionId.replace('ses_', ''),
  expiresAt: timestampFromMs(SESSION_END),
  renewAfter: timestampFromMs(SESSION_END - 300_000),
  renewableUntil: timestampFromMs(SESSION_END + 7_200_000),
  renewalToken: 'renewal-1',
  replay: { state: 'ready', epoch: EPOCH, lastSequence: 7, oldestSequence: 0 },
  continuityState: 'new',
  identityState: 'anonymous',
})

export function infoOf(code: PublicErrorCode, more: { retryAfter?: number } = {}) {
  const { retryable, terminal } = new GatewayError(code).rule
  return create(ErrorInfoSchema, { code, retryable, terminal, ...more })
}

/** A Connect error with an `ErrorInfo` detail, as a core throws it. */
export function refusal(code: PublicErrorCode, more: { retryAfter?: number } = {}): ConnectError {
  const detail = { desc: ErrorInfoSchema, value: infoOf(code, more) }
  return new ConnectError('refused', Code.FailedPrecondition, undefined, [detail])
}

/** The acceptance of a visitor's message. */
export const acceptedOf = (sessionId: string, clientOperationId: string, sequence: number) => ({
  clientOperationId,
  messageId: `msg_${clientOperationId}`,
  sessionId,
  conversationId: 'cnv_1',
  sequence,
  state: 'queued',
  acceptedAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
  replayed: clientOperationId.startsWith('again'),
})

/** The error of a call to a core that refuses connections. */
export function unreachable(): ConnectError {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  return new ConnectError('unreachable', Code.Unavailable, undefined, undefined, cause)
}

export const CONFIG = {
  defaultLocale: 'en',
  supportedLocales: ['en', 'sv'],
  appearance: {
    title: 'Shop',
    greeting: 'Hello',
    accentColor: '#2f6f4f',
    position: 'right',
    translations: { de: { title: 'Laden' }, 'de-AT': { greeting: 'Servus' } },
  },
  capabilities: { identity: true, typing: true, pageContext: true },
  consent: { required: false },
  online: true,
  nextChangeAt: timestampFromDate(new Date('2026-11-23T16:00:00Z')),
  limits: { bodyMaxLength: 4000, pageContextMaxBytes: 4096, historyPageMax: 100, screenshotMaxBytes: 1, outboxMax: 50 },
  realtime: { heartbeatSeconds: 15, reconnectMinMs: 500, reconnectMaxMs: 20_000 },
}

export const MESSAGE = {
  messageId: 'msg_1',
  conversationId: 'cnv_1',
  sequence: 4,
  author: { kind: 'agent', displayName: 'Ada' },
  body: 'Hi',
  contentType: 'text',
  state: 'sent',
  createdAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
}

export const ATTEMPT = {
  attemptId: 'att_1',
  deliveryId: 'dlv_1',
  leadId: 'lead_1',
  subscriptionId: 'sub_1',
  attemptNumber: 1,
  status: DeliveryStatus.PENDING,
  correlationId: 'corr-1',
  createdAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
  updatedAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5, 60)),
}

export const UPLOAD = {
  maxBytes: 5_242_880,
  contentTypes: ['image/png'],
  expiresAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
}
