/**
 * Returns the lines of a stack that name code. A message may quote input on several lines, so no line of it is
 * returned.
 */
export function stackFrames({ message, stack = '' }: Error): string[] {
  const start = stack.indexOf(message)
  const frames = start < 0 ? stack : stack.slice(start + message.length)
  return frames.split('\n').filter((line) => line.startsWith('    at '))
}
