import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { leaksIn } from './leaks.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder with one file per started process. The file contains the output of the process. */
    processOutput: string
  }
}

/** `npm start` and `npm run serve` print a sign-in link on a line of its own. No log line may contain one. */
const withoutSignInLink = (text: string) => text.replaceAll(/^ {2}https?:\S+\/console\/#sign-in=[\w-]{43}$/gm, '')

/** Stores the output of all started processes. Fails the test run if the output contains a secret. */
export default (project: TestProject) => {
  const folder = mkdtempSync(join(tmpdir(), 'service-output-'))
  project.provide('processOutput', folder)
  return () => {
    const files = readdirSync(folder)
    const leaks = files.flatMap((file) =>
      leaksIn(withoutSignInLink(readFileSync(join(folder, file), 'utf8'))).map((leak) => `${file}: ${leak}`),
    )
    rmSync(folder, { recursive: true })
    if (leaks.length > 0) throw new Error(`Process output contains secrets:\n${leaks.slice(0, 20).join('\n')}`)
  }
}
