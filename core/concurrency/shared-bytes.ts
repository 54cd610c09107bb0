/** Bounds memory that several holders share. */
export function createSharedBytes(max: number) {
  let used = 0
  let holders = 0

  return {
    join(eachMax: number) {
      let own = 0
      let isHolding = true
      holders += 1
      const change = (bytes: number) => {
        own += bytes
        used += bytes
      }
      return {
        /**
         * Counts bytes. Returns false, and counts nothing, if the holder would then exceed its maximum.
         * Once all holders have used the memory up, the maximum is the holder's fair share.
         */
        take(bytes: number) {
          const isFair = used + bytes <= max || own + bytes <= max / holders
          if (!isHolding || own + bytes > eachMax || !isFair) return false
          change(bytes)
          return true
        },
        giveBack(bytes: number) {
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
