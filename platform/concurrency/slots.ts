/** A group that shares some of the slots, for example the calls of one session. */
interface SlotGroup {
  key: string
  max: number
  /** Default: no limit. */
  waitingMax?: number
}

export interface Slot {
  /** Gives the slot back, but still counts for its groups. */
  release(): void
  /** Stops counting for the groups, and gives the slot back. */
  leave(): void
}

export class NoSlotError extends Error {
  override readonly name = 'NoSlotError'
  /** Whether a group has too many waiting calls. False if too many wait in all, or the call waited too long. */
  readonly isGroupFull: boolean

  constructor(isGroupFull: boolean) {
    super(isGroupFull ? 'too many waiting calls of a group' : 'too many waiting calls')
    this.isGroupFull = isGroupFull
  }
}

interface Waiting {
  groups: readonly SlotGroup[]
  resolve(slot: Slot): void
}

export type Slots = ReturnType<typeof createSlots>

/** Limits how many calls run at once. Others wait, first come, first served. */
export function createSlots(options: {
  max: number
  /** Default: no limit. */
  waitingMax?: number
  waitMaxMs?: number
  /** Calls `run` after the time, unless the returned function is called first. */
  after?: (ms: number, run: () => void) => () => void
}) {
  const { max, waitingMax = Infinity, waitMaxMs = Infinity, after = () => () => {} } = options
  const counts = new Map<string, { running: number; waiting: number }>()
  const waiting = new Set<Waiting>()
  let running = 0

  const countOf = (key: string) => counts.get(key) ?? { running: 0, waiting: 0 }
  const hasRoom = (groups: readonly SlotGroup[]) => groups.every(({ key, max }) => countOf(key).running < max)

  function change(groups: readonly SlotGroup[], kind: 'running' | 'waiting', by: 1 | -1) {
    for (const { key } of groups) {
      const count = countOf(key)
      count[kind] += by
      if (count.running + count.waiting === 0) counts.delete(key)
      else counts.set(key, count)
    }
  }

  function take(groups: readonly SlotGroup[]): Slot {
    running++
    change(groups, 'running', 1)
    let holds = true
    let isCounted = true
    function release() {
      if (!holds) return
      holds = false
      running--
      startWaiting()
    }
    return {
      release,
      leave() {
        if (isCounted) {
          isCounted = false
          change(groups, 'running', -1)
          if (!holds) startWaiting()
        }
        release()
      },
    }
  }

  function startWaiting() {
    for (const each of waiting) {
      if (running >= max) return
      if (hasRoom(each.groups)) each.resolve(take(each.groups))
    }
  }

  const slots = {
    /** Runs a call in a slot. Rejects like `enter`. */
    async run<Answer>(call: () => Promise<Answer>, groups?: readonly SlotGroup[]) {
      const slot = await slots.enter(groups)
      try {
        return await call()
      } finally {
        slot.leave()
      }
    },

    /**
     * Waits for a slot. A call whose group holds all its slots does not block others. Errors: `NoSlotError` if
     * too many calls wait, or after `waitMaxMs`; the reason of the signal.
     */
    async enter(groups: readonly SlotGroup[] = [], signal?: AbortSignal): Promise<Slot> {
      signal?.throwIfAborted()
      if (running < max && hasRoom(groups)) return take(groups)
      if (groups.some(({ key, waitingMax = Infinity }) => countOf(key).waiting >= waitingMax))
        throw new NoSlotError(true)
      if (waiting.size >= waitingMax) throw new NoSlotError(false)
      return new Promise((resolve, reject) => {
        const stop = () => {
          waiting.delete(entry)
          change(groups, 'waiting', -1)
          cancelTimer()
          signal?.removeEventListener('abort', onAbort)
        }
        const onAbort = () => {
          stop()
          reject(signal!.reason)
        }
        const entry: Waiting = {
          groups,
          resolve(slot) {
            stop()
            resolve(slot)
          },
        }
        const cancelTimer = after(waitMaxMs, () => {
          stop()
          reject(new NoSlotError(false))
        })
        signal?.addEventListener('abort', onAbort)
        waiting.add(entry)
        change(groups, 'waiting', 1)
      })
    },
  }
  return slots
}
