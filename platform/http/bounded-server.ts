import type { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { queueRequests } from './request-queue.ts'
import { boundUnreadAnswers } from './unread-answers.ts'

/** Maximum number of connections. Scrapers, probes and browsers keep a few each. */
const CONNECTIONS_MAX = 500
export const HEAD_MS = 10_000
const HEAD_CHECK_MS = 1_000

/** Bounds memory and connections of a server for small answers. Closes connections that send no whole request. */
export function boundServer(server: Server) {
  // A request has no body that is read.
  Object.assign(server, { maxConnections: CONNECTIONS_MAX, requestTimeout: HEAD_MS })
  requireWholeHeads(server)
  queueRequests(server)
  boundUnreadAnswers(server)
}

/**
 * Closes HTTP/1.1 connections that send nothing, or no whole head, for `headMs`. Those that wait for a next request
 * are closed after the server's `keepAliveTimeout`. Must be called before the server listens.
 */
export function requireWholeHeads(server: EventEmitter, headMs = HEAD_MS) {
  Object.assign(server, { headersTimeout: headMs, connectionsCheckingInterval: Math.min(HEAD_CHECK_MS, headMs) })
}

export function closeServer(server: Server) {
  server.closeAllConnections()
  return new Promise<void>((resolve) => server.close(() => resolve()))
}
