/** Bounds memory that several holders share. */
export interface SharedBytes {
  /** @param eachMax maximum for this holder */
  join(eachMax: number): BytesHolder
}

interface BytesHolder {
  /**
   * Counts bytes. Returns false, and counts nothing, if the holder would have more than its maximum,
   * or if all holders have used the memory up and this one would have more than its fair share.
   */
  take(bytes: number): boolean
  giveBack(bytes: number): void
  /** Gives all bytes back. */
  leave(): void
}

export function createSharedBytes(max: number): SharedBytes {
  let used = 0
  let holders = 0

  return {
    join(eachMax) {
      let own = 0
      let isHolding = true
      holders += 1
      const change = (bytes: number) => {
        own += bytes
        used += bytes
      }
      return {
        take(bytes) {
          const isFair = used + bytes <= max || own + bytes <= max / holders
          if (!isHolding || own + bytes > eachMax || !isFair) return false
          change(bytes)
          return true
        },
        giveBack(bytes) {
          if (isHolding) change(-bytes)
        },
        leave() {
          if (!isHolding) return
          isHolding = false
          holders -= 1
          change(-own)
        },
      }
    },
  }
}
