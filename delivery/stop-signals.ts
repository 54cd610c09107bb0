import type { Logger } from 'pino'

/** Signals by which a process manager or a terminal asks for an orderly stop. */
export const stopSignals: ('SIGINT' | 'SIGTERM')[] = ['SIGINT', 'SIGTERM']

/**
 * Stops the worker at the first signal. Later ones are logged and change nothing, since an attempt that is cut off is sent a
 * second time, and since `npm` and terminals can pass on one signal twice. SIGKILL ends the process at once.
 */
export function onStopSignal({ stop, logger }: { stop: () => unknown; logger: Logger }): void {
  let stopping = false
  for (const signal of stopSignals) {
    process.on(signal, () => {
      if (stopping) {
        logger.warn({ signal }, 'signal ignored: the worker is already stopping and finishes its attempts')
        return
      }
      stopping = true
      logger.info({ signal }, 'delivery worker stops; it finishes its attempts and hands back the rest')
      stop()
    })
  }
}
