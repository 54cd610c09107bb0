const variable = 'CONFORMANCE_TARGET'

/**
 * Stores the path of the target file in an environment variable, because Vitest runs in another
 * process. The credentials in the file do not appear in a list of processes.
 */
export function setTargetFile(path: string): void {
  process.env[variable] = path
}

export const targetFile = (): string => process.env[variable] ?? ''
