const variable = 'MUTATION_TESTS'

/** Sets the test files for Vitest, which Stryker starts in another process. */
export function setTests(files: readonly string[]): void {
  process.env[variable] = files.join(' ')
}

export const testsToRun = (): string[] => (process.env[variable] ?? '').split(' ')
