const variable = 'MUTATION_TESTS'

/** Stores the test files in an environment variable, because Stryker starts Vitest in another process. */
export function setTests(files: readonly string[]): void {
  process.env[variable] = files.join(' ')
}

export const testsToRun = (): string[] => (process.env[variable] ?? '').split(' ')
