import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { leaksIn } from './leaks.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of all that the run's processes write. */
    processOutput: string
  }
}

/** Keeps what every process of the run writes, and fails the run at its end where a secret is in it. */
export default (project: TestProject) => {
  const folder = mkdtempSync(join(tmpdir(), 'service-output-'))
  project.provide('processOutput', folder)
  return () => {
    const files = readdirSync(folder)
    const leaks = files.flatMap((file) =>
      leaksIn(readFileSync(join(folder, file), 'utf8')).map((leak) => `${file}: ${leak}`),
    )
    rmSync(folder, { recursive: true })
    if (leaks.length > 0)
      throw new Error(`Processes wrote what must not be in a log:\n${leaks.slice(0, 20).join('\n')}`)
  }
}
