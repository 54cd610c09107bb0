import pino from 'pino'
import { onTestFinished } from 'vitest'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { createCorePool } from '../../core-client/core-pool.ts'
import { coreTlsFiles } from '../../core-client/core-tls.ts'
import { createCoreTransport } from '../../core-client/core-transport.ts'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { createGateway } from '../app.ts'
import { readConfig } from '../config.ts'
import type { Clock } from '../gateway.ts'
import { createGatewayMetrics } from '../metrics.ts'
import type { StaticFolders } from '../routes/static-files.ts'
import { shareCompiledSchemas } from './compiled-schemas.ts'
import { createTestCore, GRANT, SITE, type TestCore } from './test-core.ts'
import { openSocket } from './test-socket.ts'

shareCompiledSchemas()
// Fastify otherwise searches all loaded modules for the name of each plugin, which takes a third of
// the time of a start.
const displayName = Symbol.for('fastify.display-name')
Object.defineProperty(Function.prototype, displayName, { value: 'plugin', writable: true, configurable: true })

/** A clock that only tests advance. Short waits (retries) use the real clock. */
export function createTestClock() {
  let now = Date.UTC(2029, 0, 1)
  const repeating = new Set<{ ms: number; due: number; run: () => void }>()
  const clock: Clock & { advance(ms: number): void } = {
    now: () => now,
    every(ms, run) {
      const job = { ms, due: now + ms, run }
      repeating.add(job)
      return () => void repeating.delete(job)
    },
    after(ms, run) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    advance(ms) {
      const until = now + ms
      for (;;) {
        const next = [...repeating].sort((a, b) => a.due - b.due)[0]
        if (next === undefined || next.due > until) break
        now = next.due
        next.due += next.ms
        next.run()
      }
      now = until
    },
  }
  return clock
}

export interface GatewayOptions {
  env?: Record<string, string>
  cores?: TestCore[]
  staticFolders?: StaticFolders
  /** Registers the step that stops the gateway. Default: it stops with the test. */
  atEnd?(step: () => Promise<void>): void
}

/**
 * Returns a function that starts a gateway when first called, and then returns the same one. For
 * the cases of a table, which need none of their own. It stops after the file.
 */
export function sharedGateway(): () => Promise<TestGateway> {
  let started: Promise<TestGateway> | undefined
  return () => (started ??= startTestGateway({ env: { RATE_LIMIT_FACTOR: '100' }, atEnd: atFileEnd }))
}

/** Starts a gateway on a free port in front of scripted cores. */
export async function startTestGateway(options: GatewayOptions = {}) {
  const cores = options.cores ?? [createTestCore()]
  const clock = createTestClock()
  const lines: string[] = []
  const metrics = createGatewayMetrics()
  const config = readConfig({ CORE_TOKEN: 'service-token-of-tests', ...options.env })
  const pool = createCorePool({
    cores: Array.from({ length: Math.max(cores.length, config.CORE_URLS.length) }, (_, index) => {
      const url = config.CORE_URLS[index] ?? `http://core-${index}.invalid`
      const { request } = createCoreTransport(url, coreTlsFiles(config))
      return { url, transport: (cores[index] ?? cores[0]!).transport, request }
    }),
  })
  const gateway = createGateway({
    config,
    cores: pool,
    logger: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
    ...(options.staticFolders && { staticFolders: options.staticFolders }),
    clock,
    random: () => 0.5,
    metrics,
  })
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  const { atEnd = onTestFinished } = options
  atEnd(async () => {
    await gateway.close()
  })
  const { port } = gateway.server.address() as { port: number }
  const url = `http://127.0.0.1:${port}`

  return {
    gateway,
    core: cores[0]!,
    cores,
    clock,
    lines,
    /** Number of queued sends. */
    waitingSends: async () => (await metrics.sendQueueLength.get()).values[0]?.value ?? 0,
    url,
    port,
    /** Makes a valid call of the widget API, changed as the test requests. */
    call(method: string, path: string, change: CallChange = {}) {
      const body = 'body' in change ? change.body : undefined
      const headers: Record<string, string | null> = {
        origin: SITE,
        'x-service-widget-version': '1.0',
        authorization: `Bearer ${GRANT}`,
        ...(method === 'POST' ? { 'idempotency-key': 'op-1', 'content-type': 'application/json' } : {}),
        ...change.headers,
      }
      return fetch(`${url}${WIDGET_PREFIX}${path}`, {
        method,
        headers: Object.fromEntries(
          Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== null),
        ),
        ...(body === undefined
          ? {}
          : { body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body) }),
        ...(change.signal ? { signal: change.signal } : {}),
      })
    },
    /** Sends bytes on a bare socket and returns everything received until it closes. */
    raw: (text: string) => openSocket(port, text, { allowHalfOpen: false }).closed,
  }
}

export type TestGateway = Awaited<ReturnType<typeof startTestGateway>>

interface CallChange {
  /** Headers to change. A header whose value is null is not sent. */
  headers?: Record<string, string | null>
  body?: unknown
  signal?: AbortSignal
}

export const message = (clientOperationId = 'op-1', more: object = {}) => ({
  clientOperationId,
  body: 'Hello',
  contentType: 'text',
  ...more,
})
