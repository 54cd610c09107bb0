import type { Logger } from 'pino'

/** Signals that request a graceful stop. */
export const stopSignals: ('SIGINT' | 'SIGTERM')[] = ['SIGINT', 'SIGTERM']

/**
 * Stops the worker at the first signal. Later signals are logged and ignored. They must not abort
 * running attempts, because an aborted attempt is sent again. `npm` and terminals may forward one
 * signal twice. Operators can end the process immediately with SIGKILL.
 */
export function onStopSignal({ stop, logger }: { stop: () => unknown; logger: Logger }): void {
  let stopping = false
  for (const signal of stopSignals) {
    process.on(signal, () => {
      if (stopping) {
        logger.warn({ signal }, 'signal ignored; delivery worker is already stopping')
        return
      }
      stopping = true
      logger.info(
        { signal },
        'delivery worker stops; finishing running attempts and returning other deliveries to the queue',
      )
      stop()
    })
  }
}
