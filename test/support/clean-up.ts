const steps: (() => unknown)[] = []

/**
 * Registers a step that runs after the last test of the current file, in reverse order of registration. Hooks and
 * tests must use this function instead of `afterAll`: Vitest ignores an `afterAll` that a running hook or test calls.
 */
export function atFileEnd(step: () => unknown): void {
  steps.push(step)
}

/** Runs all registered steps, even if one fails. */
export async function cleanUp(): Promise<void> {
  const errors: unknown[] = []
  for (let step = steps.pop(); step; step = steps.pop()) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'the clean-up of the test file failed')
}
