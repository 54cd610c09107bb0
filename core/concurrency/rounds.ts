/**
 * Goes round what there is, a part of it at each call, so that no call has much to do: everything is met within `steps`
 * calls. What comes up during a round may wait for the next one.
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
