import { setTimeout as delay } from 'node:timers/promises'
import { field, integer, line, validate } from '../rules.ts'
import type { DeliveryClaims } from './delivery-claims.ts'
import { pollEveryMs } from './delivery-dispatch.ts'
import type { ClaimedDelivery } from './webhook-requests.ts'
import { createWorkerRoom } from './worker-room.ts'

export interface ClaimRequest {
  workerId: string
  limit: number
  /**
   * Maximum number of concurrent deliveries per destination, including those that the worker is
   * sending.
   */
  perDestination: number
  underWay: ReadonlyMap<string, number>
  /** Deliveries that the worker claims in advance, in addition to `perDestination`. */
  ahead?: ReadonlyMap<string, number>
  waitMs: number
  /** If true, the call only waits. */
  onlyNew: boolean
  /** Ends the claim when it aborts. */
  signal: AbortSignal
}

/** Claims of workers of the previous release, which have no stream. */
export interface WaitingClaims {
  /**
   * Claims due deliveries, fairly across destinations. Returns an empty list if nothing becomes due
   * within `waitMs`. Errors: `ValidationFailed`.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>
  /** Deliveries may be due: every waiting claim tries again. */
  announce(): void
  /** Ends all claims. */
  close(): void
}

export function createWaitingClaims({ take, now }: { take: DeliveryClaims['take']; now: () => number }): WaitingClaims {
  const closed = new AbortController()
  let announced = new AbortController()

  return {
    async claim({ waitMs, onlyNew, signal, workerId, ...sizes }) {
      validate(
        field('/workerId', workerId, line(1, 64)),
        field('/limit', sizes.limit, integer(1, 1000)),
        field('/perDestination', sizes.perDestination, integer(1, 1000)),
        field('/waitMs', waitMs, integer(0, 30_000)),
        ...[...(sizes.ahead ?? [])].map(([name, number]) => field(`/ahead/${name}`, number, integer(0, 1000))),
      )
      const until = now() + waitMs
      const claimant = { workerId, room: createWorkerRoom(sizes), signal }
      for (;;) {
        const wakes = AbortSignal.any([signal, closed.signal, announced.signal])
        const { claimed, nextDueAt = until } = onlyNew ? { claimed: [] } : await take(claimant)
        const leftMs = until - now()
        if (claimed.length > 0 || leftMs <= 0 || signal.aborted || closed.signal.aborted) return claimed
        const pauseMs = Math.min(leftMs, pollEveryMs, Math.max(1, nextDueAt - now()))
        await delay(pauseMs, undefined, { signal: wakes }).catch(() => {})
      }
    },

    announce() {
      announced.abort()
      announced = new AbortController()
    },

    close: () => closed.abort(),
  }
}
