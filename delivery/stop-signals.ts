import type { Logger } from 'pino'

/** Signals that request a graceful stop. */
export const stopSignals: ('SIGINT' | 'SIGTERM')[] = ['SIGINT', 'SIGTERM']

/**
 * Stops the worker at the first signal. Later signals are logged and ignored: an aborted attempt
 * would be sent twice, and `npm` and terminals can forward one signal twice. SIGKILL ends the
 * process at once.
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
      logger.info({ signal }, 'delivery worker stops; finishing running attempts and releasing other deliveries')
      stop()
    })
  }
}
