import { lstatSync, readFileSync } from 'node:fs'
import { SettingError } from './start-faults.ts'

/** Returns the content of a file; undefined if there is none. Errors: `SettingError`. */
function readDataFile(path: string) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A link to nothing is a mistake. A plain file was written after the read, so it was missing.
    if (code === 'ENOENT' && !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return undefined
    throw new SettingError(`${path} in DATA_DIR cannot be read (${code}): let it be a file that this user owns`)
  }
}

/**
 * Returns the JSON object in a file; undefined if there is no file. Errors: `SettingError` with the remedy, but
 * without the content, which may have secrets.
 */
export function readJsonFile<T>(path: string, remedy: string): Partial<T> | undefined {
  const content = readDataFile(path)
  if (content === undefined) return undefined
  try {
    const value: unknown = JSON.parse(content)
    if (isRecord(value) && hasText(value)) return value as Partial<T>
  } catch {}
  throw damaged(path, remedy)
}

/** Returns the token in a file; undefined if there is no file. Errors: those of `readJsonFile`. */
export function readTokenFile(path: string): string | undefined {
  const token = readDataFile(path)
  if (token === undefined || /^[\w-]+\.[\w-]+\.[\w-]+\s*$/.test(token)) return token
  throw damaged(path, demoRemedy)
}

const damaged = (path: string, remedy: string) => new SettingError(`${path} in DATA_DIR is damaged: ${remedy}`)

const isRecord = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value is a token or an address, or has only such values. */
const hasText = (value: unknown) =>
  typeof value === 'string'
    ? /^[\x21-\x7e]+$/.test(value)
    : isRecord(value) && Object.values(value as object).every(hasText)

export const secretsRemedy =
  'restore it from a backup, or move the whole folder away to begin with a new one; its keys protect the stored data'
export const demoRemedy = 'delete it; the next start of a core creates it again'
