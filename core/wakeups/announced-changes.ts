import type { Bus } from '../bus.ts'

/** Interval in milliseconds at which state is read while the result of an announced change is unknown. */
const rereadEveryMs = 400
/** Time in milliseconds within which the write of an announced change succeeds or fails. */
export const unknownForMs = 10_000

/**
 * Emits `changed` repeatedly for announced changes whose result is unknown. So readers find a
 * change even if the process died after the write and sent no wake-up for the change.
 */
export function createAnnouncedChanges({ bus, monotonic }: { bus: Bus; monotonic: () => number }) {
  const announced = new Map<string, { ids: string[]; until: number }>()
  let timer: NodeJS.Timeout | undefined

  function reread() {
    bus.emit('changed', [...new Set([...announced.values()].flatMap(({ ids }) => ids))])
    for (const [change, { until }] of announced) if (until <= monotonic()) announced.delete(change)
    stopIfEmpty()
  }

  function stopIfEmpty() {
    if (announced.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add(change: string, ids: string[]) {
      announced.set(change, { ids, until: monotonic() + unknownForMs })
      timer ??= setInterval(reread, rereadEveryMs)
    },

    /** Forgets a change, because its result is known. */
    remove(change: string) {
      announced.delete(change)
      stopIfEmpty()
    },

    stop() {
      announced.clear()
      stopIfEmpty()
    },
  }
}
