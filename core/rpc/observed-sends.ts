import type { Core } from '../core.ts'
import type { Appended } from '../log/event-log.ts'
import { toErrorInfo } from '../transport/connect-errors.ts'

const slowMs = 1_000

/** Counts a send by its author and result. Logs one of a second or longer with its correlation id. */
export function observeSends({ metrics, logger }: Pick<Core, 'metrics' | 'logger'>) {
  return async (author: 'visitor' | 'agent' | 'bot', correlationId: string | undefined, sending: Promise<Appended>) => {
    const began = performance.now()
    let result: string | undefined
    try {
      const sent = await sending
      result = sent.replayed ? 'replayed' : 'accepted'
      return sent
    } catch (error) {
      result = toErrorInfo(error).code
      throw error
    } finally {
      metrics.sends.inc({ author, result })
      const durationMs = Math.round(performance.now() - began)
      if (durationMs >= slowMs) logger.warn({ correlationId, author, result, durationMs }, 'slow send')
    }
  }
}
