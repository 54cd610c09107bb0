import type { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { queueRequests } from './request-queue.ts'
import { boundUnreadAnswers } from './unread-answers.ts'

/** Maximum number of connections. Scrapers, probes and browsers keep a few each. */
const CONNECTIONS_MAX = 500
/** Time in milliseconds within which a connection must send the whole head of a request. */
export const HEAD_MS = 10_000
/** Interval in milliseconds at which the connections are checked. */
const HEAD_CHECK_MS = 1_000

/**
 * Bounds the memory and the connections of a server for small answers: a connection holds one answer,
 * unread answers are bounded, and connections without a whole head, or a whole request, are closed.
 */
export function boundServer(server: Server) {
  // A request has no body that is read.
  Object.assign(server, { maxConnections: CONNECTIONS_MAX, requestTimeout: HEAD_MS })
  requireWholeHeads(server)
  queueRequests(server)
  boundUnreadAnswers(server)
}

/**
 * Closes HTTP/1.1 connections that send nothing, or no whole head, for `headMs`. Must be called before
 * the server listens. Connections that wait for a next request are closed after the server's
 * `keepAliveTimeout`.
 */
export function requireWholeHeads(server: EventEmitter, headMs = HEAD_MS) {
  Object.assign(server, { headersTimeout: headMs, connectionsCheckingInterval: Math.min(HEAD_CHECK_MS, headMs) })
}
