/**
 * Returns some of the present keys at each call, so that no call has much to do. `steps` calls
 * cover all keys. Keys that appear during a round may wait for the next one.
 */
export function createRounds<K>(present: () => Iterable<K>, steps: number): () => K[] {
  let left: K[] = []
  let part = 0
  return () => {
    if (left.length === 0) {
      left = [...present()]
      part = Math.ceil(left.length / steps)
    }
    return left.splice(0, part)
  }
}
