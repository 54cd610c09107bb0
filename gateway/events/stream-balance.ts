/** Each moved stream reads what it may have missed. */
const MOVES_MAX = 20
/** Smaller differences stay, so that no stream moves to and fro. */
const SLACK_MIN = 10
const SLACK_SHARE = 0.1

/** Returns how many streams to move from the fullest to the emptiest core, as indexes of `sizes`. */
export function planMove(sizes: readonly number[]): { from: number; to: number; count: number } | undefined {
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  if (!(most - least > Math.max(SLACK_MIN, mean * SLACK_SHARE))) return undefined
  const count = Math.min(MOVES_MAX, Math.ceil((most - least) / 2))
  return { from: sizes.indexOf(most), to: sizes.indexOf(least), count }
}
