import type { Server } from 'node:http'
import { queueRequests } from './request-queue.ts'
import { boundUnreadAnswers } from './unread-answers.ts'

/** Maximum number of connections. Scrapers, probes and browsers keep a few each. */
const CONNECTIONS_MAX = 500

/**
 * Bounds the memory of a server for small answers: a connection holds one answer, and unread answers
 * are bounded.
 */
export function boundServer(server: Server): void {
  server.maxConnections = CONNECTIONS_MAX
  queueRequests(server)
  boundUnreadAnswers(server)
}
