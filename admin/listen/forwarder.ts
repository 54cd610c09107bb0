import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { retryDelay } from '../../contract/retry-delay.ts'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { parseRetryAfter } from '../../platform/http/retry-after.ts'
import type { LocalEvent } from './local-events.ts'

const attemptTimeoutMs = 10_000
/** Maximum number of events that wait for a retry. */
const maxWaiting = 1_000

/** Whether a status is answered with a retry (contract, section 5). */
export const isRetried = (status: number) => [408, 425, 429].includes(status) || status >= 500 || status < 200

/** Resolves after the time, or when the signal aborts. */
const pauseFor = (ms: number, signal: AbortSignal): Promise<unknown> => delay(ms, undefined, { signal }).catch(() => {})

/** Sends events with the headers, signatures and retries that a destination gets. */
export function createForwarder(options: {
  url: URL
  secret: string
  report: (line: string) => void
  random?: () => number
  pause?: typeof pauseFor
}) {
  const { url, secret, report, random = Math.random, pause = pauseFor } = options
  const stopped = new AbortController()
  const open = new Set<LocalEvent>()
  const waiting = new Set<Promise<void>>()

  async function attempt(event: LocalEvent) {
    const { id, body } = event
    const began = performance.now()
    const secrets = { active: secret, all: [secret] }
    const headers = webhookHeaders({ deliveryId: id, correlationId: randomUUID(), body, secrets, at: Date.now() })
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(attemptTimeoutMs)])
    try {
      const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
      await response.body?.cancel()
      const { status } = response
      const asked = status === 429 || status === 503 ? response.headers.get('retry-after') : null
      return {
        answer: `${status} in ${Math.round(performance.now() - began)} ms`,
        isFinal: !isRetried(status),
        retryAfterMs: parseRetryAfter(asked ?? undefined, Date.now()),
      }
    } catch (error) {
      return { answer: failureOf(error as Error), isFinal: false }
    }
  }

  async function run(event: LocalEvent, number: number) {
    const { answer, isFinal, retryAfterMs } = await attempt(event)
    if (stopped.signal.aborted) return
    const ms = isFinal ? undefined : retryDelay(number, { retryAfterMs, random })
    const then = ms !== undefined ? `; retry ${number} in ${duration(ms)}` : isFinal ? '' : '; no more retries'
    const hint = /^40[13] /.test(answer) ? ': does the receiver have the secret above?' : ''
    report(`${event.type} ${event.id} -> ${answer}${then}${hint}`)
    if (ms === undefined) {
      open.delete(event)
      return
    }
    const retry = pause(ms, stopped.signal).then(() => (stopped.signal.aborted ? undefined : run(event, number + 1)))
    const done: Promise<void> = retry.finally(() => waiting.delete(done))
    waiting.add(done)
  }

  return {
    /** Sends an event. Resolves after its first attempt. Retries follow while other events are sent. */
    async send(event: LocalEvent) {
      while (waiting.size >= maxWaiting && !stopped.signal.aborted) await Promise.race(waiting)
      if (stopped.signal.aborted) return
      open.add(event)
      await run(event, 1)
    },

    /** Ends all retries. Returns the events that the address has not accepted, in the order of `send`. */
    stop() {
      stopped.abort()
      return [...open]
    },
  }
}

function failureOf({ name, cause }: Error) {
  if (name === 'TimeoutError') return `no answer in ${attemptTimeoutMs / 1000} s`
  return (cause as { code?: string } | undefined)?.code ?? 'no connection'
}

const duration = (ms: number) => (ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`)
