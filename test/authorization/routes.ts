import { randomUUID } from 'node:crypto'
import { imageOf } from '../support/images.ts'
import type { VisitorResources } from './fixtures.ts'

/** A request for resources of one visitor. `walkRoutes` adds the credentials. */
export interface RouteRequest {
  path: string
  body?: unknown
  contentType?: string
}

const operation = () => ({ clientOperationId: randomUUID(), body: 'Hello', contentType: 'text' })

/**
 * A valid request for each route of the OpenAPI document. A new route needs an entry here; otherwise the test fails.
 */
export const routeRequests: Record<string, (resources: VisitorResources) => RouteRequest> = {
  'GET /config/{publicSiteKey}': ({ siteKey }) => ({ path: `/config/${siteKey}` }),
  'POST /sessions': ({ siteKey }) => ({
    path: '/sessions',
    body: { publicSiteKey: siteKey, clientInstanceId: randomUUID() },
  }),
  'POST /sessions/renew': ({ visitor }) => ({
    path: '/sessions/renew',
    body: { sessionId: visitor.session.sessionId, renewalToken: visitor.session.renewalToken },
  }),
  'POST /sessions/close': () => ({ path: '/sessions/close', body: { scope: 'panel' } }),
  'POST /sessions/identify': () => ({ path: '/sessions/identify', body: { assertion: 'a.b.c' } }),
  'DELETE /sessions/identify': () => ({ path: '/sessions/identify' }),
  'POST /sessions/consent': () => ({
    path: '/sessions/consent',
    body: { policyVersion: 'v1', decision: 'granted' },
  }),
  'POST /context/page': () => ({ path: '/context/page', body: { url: 'https://shop.example/a' } }),
  'POST /messages': () => ({ path: '/messages', body: operation() }),
  'GET /messages': () => ({ path: '/messages' }),
  'POST /messages/{clientOperationId}/retry': () => {
    const body = operation()
    return { path: `/messages/${body.clientOperationId}/retry`, body }
  },
  'POST /messages/{messageId}/stop': () => ({ path: '/messages/msg_0/stop' }),
  'GET /events': () => ({ path: '/events' }),
  'POST /ratings': () => ({ path: '/ratings', body: { score: 5 } }),
  'POST /messages/receipts': () => ({ path: '/messages/receipts', body: { upToSequence: 1, state: 'read' } }),
  'POST /presence': () => ({ path: '/presence', body: { tab: 'tab-1', state: 'away' } }),
  'POST /typing': () => ({ path: '/typing', body: { state: 'stopped' } }),
  'POST /forms/pre-chat': () => ({ path: '/forms/pre-chat', body: { fields: {} } }),
  'POST /forms/offline': () => ({ path: '/forms/offline', body: { fields: {} } }),
  'POST /commands/navigation/{commandId}/acknowledgements': ({ navigationId }) => ({
    path: `/commands/navigation/${navigationId}/acknowledgements`,
    body: { outcome: 'accepted' },
  }),
  'POST /commands/screenshots/{requestId}/acknowledgements': ({ screenshotId }) => ({
    path: `/commands/screenshots/${screenshotId}/acknowledgements`,
    body: { consent: 'granted' },
  }),
  'POST /commands/screenshots/{requestId}/upload': ({ screenshotId }) => ({
    path: `/commands/screenshots/${screenshotId}/upload`,
    body: imageOf('image/png', 100),
    contentType: 'image/png',
  }),
  'POST /api/leads/{leadId}/delivery-attempts': ({ leadId, subscriptionId }) => ({
    path: `/api/leads/${leadId}/delivery-attempts`,
    body: { subscriptionId, idempotencyKey: randomUUID() },
  }),
  'POST /api/leads/retries/{attemptId}': ({ attemptId }) => ({
    path: `/api/leads/retries/${attemptId}`,
    body: { idempotencyKey: randomUUID() },
  }),
}
