import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { atFileEnd } from '../support/clean-up.ts'

const run = promisify(execFile)
const script = join(import.meta.dirname, '../../dev/make/secrets.ts')

export interface MadeSecrets {
  folder: string
  /** Reads the variables of a created file, such as `core.env`. */
  read(file: string): Promise<Record<string, string>>
}

/** Runs `npm run make -- secrets` in a temporary folder. */
export async function makeSecrets(): Promise<MadeSecrets> {
  const parent = await mkdtemp(join(tmpdir(), 'service-secrets-'))
  atFileEnd(() => rm(parent, { recursive: true, force: true }))
  const folder = join(parent, 'secrets')
  await run(process.execPath, [script, folder])
  return {
    folder,
    async read(file) {
      const lines = (await readFile(join(folder, file), 'utf8')).split('\n').filter(Boolean)
      return Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      )
    },
  }
}
